#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// Lists names in an error message ("expected ..."): sorted, each once: "gemma, llama or qwen2".
// `names` must not be empty.
std::string alternatives(std::vector<std::string_view> names);

}  // namespace stagecraft
