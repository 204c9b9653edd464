#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"

namespace stagecraft {

// Starts a thread that calls run(). Throws Error if the system does not start one.
template <class Run>
std::thread start_thread(Run run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    throw Error("threads: {}", error.code().message());
  }
}

}  // namespace stagecraft
