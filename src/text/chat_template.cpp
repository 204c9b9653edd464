// This gives away stage 8: it is our answer to stages/08-chat/chat_template.cpp.
#include "text/chat_template.h"

namespace stagecraft {
namespace {

// `text` stays text, whatever it spells. In a chat, a special token always stands before it.
void append_text(const Tokenizer& tokenizer, std::string_view text, std::vector<TokenId>& tokens) {
  const auto more = tokenizer.encode(text, {.parse_special = false, .at_start = false});
  tokens.insert(tokens.end(), more.begin(), more.end());
}

}  // namespace

std::vector<TokenId> message_tokens(const Tokenizer& tokenizer, const Message& message) {
  std::vector<TokenId> tokens = {chat_token(tokenizer, kChatStart)};
  // In one piece: a token may span the newline of the frame and newlines of the content.
  append_text(tokenizer, message.role + "\n" + message.content, tokens);
  tokens.push_back(chat_token(tokenizer, kChatEnd));
  append_text(tokenizer, "\n", tokens);
  return tokens;
}

std::vector<TokenId> answer_opening(const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens = {chat_token(tokenizer, kChatStart)};
  append_text(tokenizer, "assistant\n", tokens);
  return tokens;
}

}  // namespace stagecraft
