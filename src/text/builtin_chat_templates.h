#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// The frames that models were trained with before checkpoints brought their templates along.
struct BuiltinChatTemplate {
  std::string_view name;  // as --chat-template takes it
  std::string_view text;  // Jinja
  std::string_view bos_token, eos_token;
};

std::span<const BuiltinChatTemplate> builtin_chat_templates();
// nullptr if there is none of this name.
const BuiltinChatTemplate* find_builtin_chat_template(std::string_view name);

// The one whose tokens the vocabulary has, tried in this order; nullptr if it has none of them:
//
//   chatml    <|im_start|>, <|im_end|>
//   llama3    <|start_header_id|>, <|end_header_id|>, <|eot_id|>
//   gemma     <start_of_turn>, <end_of_turn>
//   phi3      <|user|>, <|assistant|>, <|end|>
//   zephyr    <|user|>, <|assistant|>
//   mistral   [INST], [/INST]
//
// The frame of llama2 is plain text, which no vocabulary shows: it has to be named.
const BuiltinChatTemplate* guess_chat_template(const Tokenizer& tokenizer);

}  // namespace stagecraft
