// mistakes.json holds edits of this program, which is right.
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
  std::vector<TokenId> tokens = {chat_token(tokenizer, kChatStart)};
  append(tokens, encode(tokenizer, message.role + "\n" + message.content));
  tokens.push_back(chat_token(tokenizer, kChatEnd));
  append(tokens, encode(tokenizer, "\n"));
  return tokens;
}

std::vector<TokenId> answer_opening(const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens = {chat_token(tokenizer, kChatStart)};
  append(tokens, encode(tokenizer, "assistant\n"));
  return tokens;
}

}  // namespace stagecraft
