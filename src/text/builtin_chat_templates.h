#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// Chat templates of models from the time when checkpoints did not yet contain one.
struct BuiltinChatTemplate {
  std::string_view name;  // the name for --chat-template
  std::string_view text;  // Jinja
  std::string_view bos_token, eos_token;
};

std::span<const BuiltinChatTemplate> builtin_chat_templates();
// nullptr if there is none of this name.
const BuiltinChatTemplate* find_builtin_chat_template(std::string_view name);

// The first template in this order whose tokens are all in the vocabulary, or nullptr:
//
//   chatml    <|im_start|>, <|im_end|>
//   llama3    <|start_header_id|>, <|end_header_id|>, <|eot_id|>
//   gemma     <start_of_turn>, <end_of_turn>
//   phi3      <|user|>, <|assistant|>, <|end|>
//   zephyr    <|user|>, <|assistant|>
//   mistral   [INST], [/INST]
//
// llama2 is not in the list: its frame is plain text, so a vocabulary cannot show it. Users have to
// name it.
const BuiltinChatTemplate* guess_chat_template(const Tokenizer& tokenizer);

}  // namespace stagecraft
