#include "serve/api_error.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace stagecraft {

std::string_view ApiError::type() const {
  if (status_ == 429) return "rate_limit_error";
  return status_ >= 500 ? "server_error" : "invalid_request_error";
}

std::string ApiError::json() const {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json() : nlohmann::json(text);
  };
  const nlohmann::json error = {
      {"message", what()}, {"type", type()}, {"param", or_null(param_)}, {"code", or_null(code_)}};
  return json_text({{"error", error}}) + "\n";
}

}  // namespace stagecraft
