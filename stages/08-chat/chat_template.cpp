#include "text/chat_template.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 8.1. The contract is in src/text/chat_template.h. What you need is there already:
//   chat_token(tokenizer, kChatStart)   the one token <|im_start|> (src/text/chat_tokens.h)
//   tokenizer.encode(text, options)     the tokens of a text (src/text/tokenizer.h: read what the
//                                       three options mean before you choose)
std::vector<TokenId> message_tokens([[maybe_unused]] const Tokenizer& tokenizer,
                                    [[maybe_unused]] const Message& message) {
  // 1. <|im_start|>, one token
  // 2. the role, a newline and the content: encoded in one piece, as text whatever they spell, and
  //    not as the start of anything
  // 3. <|im_end|>, one token
  // 4. a newline, encoded as in 2
  NOT_IMPLEMENTED("stage 8.1: message_tokens");
}

std::vector<TokenId> answer_opening([[maybe_unused]] const Tokenizer& tokenizer) {
  // The beginning of an assistant's message, up to where its content would begin.
  NOT_IMPLEMENTED("stage 8.1: answer_opening");
}

}  // namespace stagecraft
