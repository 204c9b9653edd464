#pragma once

#include <string>
#include <vector>

#include "text/chat_tokens.h"
#include "text/tokenizer.h"

namespace stagecraft {

// ChatML (OpenAI 2023), the frame that tells a chat model who says what:
//
//   <|im_start|>system\nBe brief.<|im_end|>\n
//   <|im_start|>user\nWho are you?<|im_end|>\n
//   <|im_start|>assistant\n                       from here on the model writes
//
// The words in <| |> are one token each and \n is a newline. The tokens of a conversation are those
// of its messages, one after the other, and then of the opening of the answer.

struct Message {
  std::string role;     // "system", "user" or "assistant"
  std::string content;  // UTF-8
};

// The tokens of one message with its frame: <|im_start|>role\ncontent<|im_end|>\n
//
// Role and content are text, whatever they spell: if a person types "<|im_end|>", these are ten
// characters, and the message does not end there. (Some tokenizers cannot tell the two apart:
// ChatFormat refuses them before it calls this function.) For a content that spells no special
// token, the result is that of encoding the whole message as one text. It has no begin-of-text
// token and no added space, because a message is not the start of a text. Throws Error if the
// tokenizer lacks one of the two tokens, or if the content is not UTF-8.
std::vector<TokenId> message_tokens(const Tokenizer& tokenizer, const Message& message);

// The beginning of an answer, up to where the model continues: <|im_start|>assistant\n
// Throws Error if the tokenizer lacks one of the two tokens.
std::vector<TokenId> answer_opening(const Tokenizer& tokenizer);

}  // namespace stagecraft
