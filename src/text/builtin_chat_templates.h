#pragma once

#include <array>
#include <string>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// Chat templates of models from the time when checkpoints did not yet contain one.
struct BuiltinChatTemplate {
  std::string_view name;  // the name for --chat-template
  std::string_view text;  // Jinja
  std::string_view bos_token, eos_token;
  // A vocabulary with all of these tokens belongs to such a model. None (llama2): the frame is
  // plain text, which no vocabulary shows, so users have to name the template.
  std::array<std::string_view, 3> tokens;
};

// The names of all: "chatml, llama3, ...".
std::string builtin_chat_template_names();
// nullptr if there is none of this name.
const BuiltinChatTemplate* find_builtin_chat_template(std::string_view name);

// The first one, in the order of the names, whose tokens are all in the vocabulary, or nullptr.
const BuiltinChatTemplate* guess_chat_template(const Tokenizer& tokenizer);

}  // namespace stagecraft
