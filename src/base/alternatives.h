#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// For "expected ...": the names sorted, each once: "gemma, llama or qwen2". At least one.
std::string alternatives(std::vector<std::string_view> names);

}  // namespace stagecraft
