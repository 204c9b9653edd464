#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stagecraft {

// An error's message, with rename(NAME) in the place of each NAME between ' and '. If it begins
// with `where`, that part stays as it is: a path may hold a ' too.
std::string rename_quoted(std::string_view message, std::string_view where,
                          const std::function<std::string(const std::string&)>& rename);

}  // namespace stagecraft
