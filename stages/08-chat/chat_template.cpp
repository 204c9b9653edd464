#include "text/chat_template.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// 8.1. The contract is in src/text/chat_template.h; the handout lists the given functions.
std::vector<TokenId> message_tokens([[maybe_unused]] const Tokenizer& tokenizer,
                                    [[maybe_unused]] const Message& message) {
  NOT_IMPLEMENTED("stage 8.1: message_tokens");
}

std::vector<TokenId> answer_opening([[maybe_unused]] const Tokenizer& tokenizer) {
  NOT_IMPLEMENTED("stage 8.1: answer_opening");
}

}  // namespace stagecraft
