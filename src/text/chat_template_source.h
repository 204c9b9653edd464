#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/model_source.h"
#include "text/tokenizer.h"

namespace stagecraft {

// A chat template as some file has it, and what its variables bos_token, eos_token ... stand for.
struct ChatTemplateSource {
  std::string text;
  std::string where;  // "chat_template.jinja", for errors with the folder
  std::vector<std::pair<std::string, std::string>> special_tokens;
};

// What a model says of itself, `text` empty if it has no template: chat_template.jinja, or
// "chat_template" in tokenizer_config.json (one, or of several the one named "default"), or
// "tokenizer.chat_template" of a GGUF file, or the roles of a .flm file. Throws Error if one of
// them is not what it should be, or no UTF-8; whether it is Jinja is for jinja::Template to say.
ChatTemplateSource read_chat_template(const ModelSource& model, const Tokenizer& tokenizer);
// The same for a caller that only copies it: the special tokens of a GGUF file, which are ids, are
// left out.
ChatTemplateSource read_chat_template(const ModelSource& model);

}  // namespace stagecraft
