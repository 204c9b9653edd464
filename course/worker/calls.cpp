#include "course/worker/calls.h"

#include "base/error.h"

namespace stagecraft::stages {
namespace {

std::map<std::string, Call>& calls() {  // in a function: static initialisers use it
  static std::map<std::string, Call> table;
  return table;
}

}  // namespace

Callable::Callable(std::initializer_list<std::pair<const char*, Call>> functions) {
  calls().insert(functions.begin(), functions.end());
}

Call find_call(const std::string& function) {
  const auto found = calls().find(function);
  if (found == calls().end()) throw Error("request: no function '{}'", function);
  return found->second;
}

}  // namespace stagecraft::stages
