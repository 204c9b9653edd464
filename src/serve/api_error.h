#pragma once

#include <string>

#include "base/error.h"

namespace stagecraft {

// A request that is not answered: the HTTP status, and what OpenAI's error object says.
class ApiError : public Error {
 public:
  ApiError(int status, std::string type, std::string param, std::string code,
           const std::string& message)
      : Error(message),
        status_(status),
        type_(std::move(type)),
        param_(std::move(param)),
        code_(std::move(code)) {}

  // Status 400: the field `param` ("" for the whole request) is not what it should be.
  static ApiError bad_request(std::string param, const std::string& message,
                              std::string code = "") {
    return {400, "invalid_request_error", std::move(param), std::move(code), message};
  }

  int status() const { return status_; }
  const std::string& type() const { return type_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }
  // {"error": {"message", "type", "param", "code"}}; param and code are null where they are empty.
  std::string json() const;

 private:
  int status_;
  std::string type_, param_, code_;
};

}  // namespace stagecraft
