#pragma once

#include <optional>
#include <vector>

#include "serve/request_fields.h"
#include "text/chat_format.h"
#include "text/tool_calls.h"

namespace stagecraft {

// The fields of a chat that other requests lack: the messages, and the functions that the model may
// call. The functions throw ApiError.

// "messages". The roles follow each other as ChatFormat::tokens expects. Also checks
// "add_generation_prompt" and "continue_final_message", which other servers need to continue a last
// message of the role "assistant".
std::vector<ToolMessage> parse_messages(RequestFields& fields);

struct ChatTools {
  std::optional<JsonNode> array;  // as given, for the chat template
  std::vector<Tool> callable;     // functions that this answer may call
  bool forced = false;            // the answer must be a call
  bool several = true;            // more than one call is allowed
};
// "tools", "tool_choice" and "parallel_tool_calls".
ChatTools parse_tools(RequestFields& fields, const ChatFormat& format);

// "chat_template_kwargs", "reasoning_effort" and "verbosity". The names of the variables are
// checked.
TemplateVariables parse_template_variables(RequestFields& fields, const ChatFormat& format);

// The tokens of the conversation; the caller checks them.
std::vector<TokenId> chat_prompt(const std::vector<ToolMessage>& messages, const ChatTools& tools,
                                 const TemplateVariables& variables, const ChatFormat& format);

}  // namespace stagecraft
