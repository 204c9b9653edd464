#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/tool_call.h"

namespace stagecraft {

// A function that may be called.
struct Tool {
  std::string name;
  std::optional<JsonNode> parameters;  // a JSON Schema of its arguments; none: there are none
};

// The grammar, in GBNF, of an answer that may call these functions, at least one of them. forced:
// the answer is a call, else it may also be any other text, perhaps with calls behind it. several:
// more than one call (Tagged only). Throws Error where a schema is not understood.
std::string tool_gbnf(ToolForm form, const std::vector<Tool>& tools, bool forced, bool several);

// Finds the calls in an answer while it is written. Text that only looks like a call, as when the
// answer was cut off within it, stays text.
class ToolCallReader {
 public:
  explicit ToolCallReader(ToolForm form) : form_(form) {}

  struct Found {
    std::string text;
    std::vector<ToolCall> calls;
  };
  Found push(std::string_view piece);
  // The rest, once no more comes.
  Found finish();

 private:
  Found read_tagged(bool at_end);

  ToolForm form_;
  std::string held_;  // not decided yet
  bool in_call_ = false;
  bool after_call_ = false;
};

}  // namespace stagecraft
