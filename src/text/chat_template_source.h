#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/model_source.h"
#include "text/tokenizer.h"

namespace stagecraft {

// The variables bos_token, eos_token ... of a chat template, and their values.
using SpecialTokens = std::vector<std::pair<std::string, std::string>>;

// The text of a chat template from a file.
struct ChatTemplateSource {
  std::string text;
  std::string where;  // the file, and the key in it, for error messages
  SpecialTokens special_tokens;
};

// The chat template of a model: chat_template.jinja, or "chat_template" in tokenizer_config.json
// (if there are several, the one named "default"), or "tokenizer.chat_template" of a GGUF file, or
// one made from the roles of a .flm file. `text` is empty if the model has no template. Throws
// Error if a file has the wrong form or is not UTF-8. Jinja syntax is checked later, by
// jinja::Template.
ChatTemplateSource read_chat_template(const ModelSource& model, const Tokenizer& tokenizer);
// The same for a caller that needs only the template: without the special tokens of a GGUF file,
// which are stored as ids.
ChatTemplateSource read_chat_template(const ModelSource& model);
// The text of a file with a template. Throws Error if the file is empty or JSON.
std::string read_template_file(const std::filesystem::path& file);

}  // namespace stagecraft
