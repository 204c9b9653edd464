#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

// A request that is refused: the HTTP status, and the fields of OpenAI's error object.
class ApiError : public Error {
 public:
  ApiError(int status, std::string param, std::string code, const std::string& message)
      : Error(message), status_(status), param_(std::move(param)), code_(std::move(code)) {}

  // Status 400: the field `param` has a wrong value; "" stands for the whole request.
  static ApiError bad_request(std::string param, const std::string& message,
                              std::string code = "") {
    return {400, std::move(param), std::move(code), message};
  }

  // Status 500: the model, or the memory, failed.
  static ApiError server_error(const std::string& message) { return {500, "", "", message}; }

  int status() const { return status_; }
  std::string_view type() const;  // follows from the status: "invalid_request_error"
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  // {"error": {"message", "type", "param", "code"}}; an empty param or code becomes null.
  std::string json() const;

 private:
  int status_;
  std::string param_, code_;
};

}  // namespace stagecraft
