// Right: pieces counted first, then put in their places.
#include "text/chat_template.h"

namespace stagecraft {
namespace {

void append(std::vector<TokenId>& tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.encode(text, {.parse_special = false, .at_start = false});
}

}  // namespace

std::vector<TokenId> message_tokens(const Tokenizer& tokenizer, const Message& message) {
  const std::vector<TokenId> text = encode(tokenizer, message.role + "\n" + message.content);
  const std::vector<TokenId> newline = encode(tokenizer, "\n");
  std::vector<TokenId> tokens(text.size() + newline.size() + 2);
  tokens.front() = chat_token(tokenizer, kChatStart);
  for (std::size_t i = 0; i < text.size(); ++i) tokens[1 + i] = text[i];
  tokens[1 + text.size()] = chat_token(tokenizer, kChatEnd);
  for (std::size_t i = 0; i < newline.size(); ++i) tokens[2 + text.size() + i] = newline[i];
  return tokens;
}

std::vector<TokenId> answer_opening(const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens = {chat_token(tokenizer, kChatStart)};
  append(tokens, encode(tokenizer, "assistant\n"));
  return tokens;
}

}  // namespace stagecraft
