#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace stagecraft {

// Returns an error message in which each NAME between ' and ' is replaced by rename(NAME). If it
// begins with `where`, that part is not changed, because a path may contain ', too.
std::string rename_quoted(std::string_view message, std::string_view where,
                          const std::function<std::string(const std::string&)>& rename);

}  // namespace stagecraft
