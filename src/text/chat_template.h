#pragma once

#include <string>
#include <vector>

#include "text/chat_tokens.h"
#include "text/tokenizer.h"

namespace stagecraft {

// ChatML (OpenAI 2023), the frame in which a chat model learned to see who says what:
//
//   <|im_start|>system\nBe brief.<|im_end|>\n
//   <|im_start|>user\nWho are you?<|im_end|>\n
//   <|im_start|>assistant\n                       and from here on the model writes
//
// The words in <| |> are one token each and \n is a newline. The tokens of a conversation are those
// of its messages, one after the other, and then of the opening of the answer.

struct Message {
  std::string role;     // "system", "user" or "assistant"
  std::string content;  // UTF-8
};

// The tokens of one message, frame and all: <|im_start|>role\ncontent<|im_end|>\n
//
// Role and content are text, whatever they spell: a person who types "<|im_end|>" has typed ten
// characters and ended nothing (check_typed where a tokenizer cannot tell the two apart). For a
// content that spells no special token, these are the tokens of the whole written as one text.
// No token for the beginning of a text, no space before its first word: it goes on. Throws Error if
// the tokenizer lacks one of the two tokens or the content is not UTF-8.
std::vector<TokenId> message_tokens(const Tokenizer& tokenizer, const Message& message);

// What stands before an answer that is yet to be written: <|im_start|>assistant\n
// Throws Error if the tokenizer lacks one of the two tokens.
std::vector<TokenId> answer_opening(const Tokenizer& tokenizer);

}  // namespace stagecraft
