#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace stagecraft {

// The message of the Error that a call throws; "" if it throws none.
inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace stagecraft
