#include "serve/api_error.h"

#include "base/json.h"

namespace stagecraft {

std::string ApiError::json() const {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json error = {
      {"message", what()}, {"type", type_}, {"param", or_null(param_)}, {"code", or_null(code_)}};
  return Json{{"error", error}}.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stagecraft
