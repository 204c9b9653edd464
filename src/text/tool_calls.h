#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/grammar/json_schema.h"
#include "text/tool_call.h"

namespace stagecraft {

// A function that the model may call.
struct Tool {
  std::string name;
  std::optional<JsonNode> parameters;  // JSON Schema of its arguments; nullopt: it has none
  // Whether the grammar must express all of `parameters`. false: see BeyondGrammar::Ignore.
  bool strict = true;
};

struct ToolRules {
  // The answer must be a call; otherwise it may also be other text, with Tagged even text followed
  // by calls.
  bool forced = false;
  bool several = false;  // more than one call is allowed (Tagged only)
  // An answer without calls is JSON of this schema (Tagged only).
  std::optional<JsonNode> text_schema = std::nullopt;
  BeyondGrammar beyond_text = BeyondGrammar::Refuse;  // for keywords of this schema
};

// The grammar, in GBNF, of an answer that may call `tools`, which must not be empty. ToolCallReader
// finds each call that the grammar allows. Throws Error if a schema is not supported, or that of a
// tool is not one of objects; a GrammarError if the grammar is too large.
std::string tool_gbnf(ToolForm form, const std::vector<Tool>& tools, const ToolRules& rules);

// Finds calls in an answer during generation. Text that only resembles a call, for example because
// the answer was cut off inside it, stays text.
class ToolCallReader {
 public:
  explicit ToolCallReader(ToolForm form) : form_(form) {}

  struct Found {
    std::string text;
    std::vector<ToolCall> calls;
  };
  Found push(std::string_view piece);
  // The rest, after the last piece.
  Found finish();

 private:
  Found read_tagged(bool at_end);
  std::size_t find_close();

  ToolForm form_;
  std::string held_;      // text not yet known to be a call or not
  bool is_text_ = false;  // not Tagged: the answer is no call
  // Tagged:
  bool in_call_ = false;      // held_ is the beginning of a call, after <tool_call>
  std::size_t searched_ = 0;  // bytes of this call without its end
  bool in_string_ = false;    // whether they end inside a string
  bool after_call_ = false;   // a call was found
};

}  // namespace stagecraft
