#include "text/chat_template.h"

#include "base/error.h"

namespace stagecraft {
namespace {

TokenId frame_token(const Tokenizer& tokenizer, std::string_view token) {
  const std::optional<TokenId> id = tokenizer.id_of(token);
  if (!id) {
    throw Error("chat template: expected a tokenizer with the tokens {} and {}, found no {}",
                kChatStart, kChatEnd, token);
  }
  return *id;
}

// `text` as text, whatever it spells. A frame token always stands before it in a chat.
void append_text(const Tokenizer& tokenizer, std::string_view text, std::vector<TokenId>& tokens) {
  for (const TokenId token : tokenizer.encode(text, {.parse_special = false, .at_start = false})) {
    if (tokenizer.token_of(token) == kChatStart || tokenizer.token_of(token) == kChatEnd) {
      throw Error(
          "chat template: expected a tokenizer in which {} is special, found one in which "
          "typing it makes it",
          tokenizer.token_of(token));
    }
    tokens.push_back(token);
  }
}

}  // namespace

std::vector<TokenId> message_tokens(const Tokenizer& tokenizer, const Message& message) {
  std::vector<TokenId> tokens = {frame_token(tokenizer, kChatStart)};
  // In one piece, for a token may span the newline of the frame and those of the content.
  append_text(tokenizer, message.role + "\n" + message.content, tokens);
  tokens.push_back(frame_token(tokenizer, kChatEnd));
  append_text(tokenizer, "\n", tokens);
  return tokens;
}

std::vector<TokenId> answer_opening(const Tokenizer& tokenizer) {
  frame_token(tokenizer, kChatEnd);  // without it no answer would end
  std::vector<TokenId> tokens = {frame_token(tokenizer, kChatStart)};
  append_text(tokenizer, "assistant\n", tokens);
  return tokens;
}

}  // namespace stagecraft
