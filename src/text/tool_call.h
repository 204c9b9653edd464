#pragma once

#include <string>

namespace stagecraft {

// A call of a function ("tool") that the model requests.
struct ToolCall {
  std::string id;         // the result refers to the call by it; empty if not assigned yet
  std::string name;       // of the function
  std::string arguments;  // the text of a JSON object
  bool operator==(const ToolCall&) const = default;
};

// How a model writes a call.
enum class ToolForm {
  None,    // no known form
  Tagged,  // <tool_call>\n{"name": "f", "arguments": {...}}\n</tool_call>   Hermes, Qwen
  Bare,    // {"name": "f", "parameters": {...}}                            Llama 3.1
};

}  // namespace stagecraft
