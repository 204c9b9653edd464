#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// For "expected ...": the names in their order, each once: "gemma, llama or qwen2".
std::string alternatives(std::vector<std::string_view> names);

}  // namespace stagecraft
