#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "course/worker/arguments.h"

namespace stagecraft::stages {

// How a worker calls a staged function: from a request's inputs and scalars to its arguments.
using Call = void (*)(Arguments&);

// Registers calls: `const Callable kBlocks{{"mlp", call_mlp}};` in any file of this folder.
class Callable {
 public:
  Callable(std::initializer_list<std::pair<const char*, Call>> functions);
};

// Throws Error for a function that is not registered.
Call find_call(const std::string& function);

}  // namespace stagecraft::stages
