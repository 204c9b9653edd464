#include "serve/api_error.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace stagecraft {

std::string ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  const nlohmann::json error = {
      {"message", what()}, {"type", type_}, {"param", or_null(param_)}, {"code", or_null(code_)}};
  return json_text({{"error", error}}) + "\n";
}

}  // namespace stagecraft
