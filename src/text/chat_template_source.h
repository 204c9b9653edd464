#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/model_source.h"
#include "text/tokenizer.h"

namespace stagecraft {

// The name of the template that transformers uses if there are tools.
inline constexpr std::string_view kToolUse = "tool_use";
// The files of a model's folder that hold its chat template, and a second one for conversations
// with tools.
inline constexpr std::string_view kChatTemplateFile = "chat_template.jinja";
inline constexpr std::string_view kToolTemplateFile = "additional_chat_templates/tool_use.jinja";

// The variables bos_token, eos_token ... of a chat template, and their values.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

// The text of a chat template from a file.
struct ChatTemplateSource {
  std::string text;
  std::string where;  // the file, and the key in it, for error messages
  SpecialTokens special_tokens;
  // The template of conversations with tools, if it is another one; "": `text`.
  std::string tools_text = {};
  std::string tools_where = {};
};

// The chat template of a model: chat_template.jinja, or "chat_template" in tokenizer_config.json,
// or "tokenizer.chat_template" of a GGUF file, or one made from the roles of a .flm file. A second
// template, named "tool_use", may serve conversations with tools: an entry of "chat_template", or
// additional_chat_templates/tool_use.jinja, or "tokenizer.chat_template.tool_use". A model that has
// only this one uses it for all conversations. `text` is empty if the model has no template. Throws
// Error if a file has the wrong form or is not UTF-8. Jinja syntax is checked later, by
// jinja::Template.
ChatTemplateSource read_chat_template(const ModelSource& model, const Tokenizer& tokenizer);
// The same for a caller that needs only the template: without the special tokens of a GGUF file,
// which are stored as ids.
ChatTemplateSource read_chat_template(const ModelSource& model);
// The text of a file with a template. Throws Error if the file is empty or JSON.
std::string read_template_file(const std::filesystem::path& file, Pipes pipes = Pipes::Refuse);

}  // namespace stagecraft
