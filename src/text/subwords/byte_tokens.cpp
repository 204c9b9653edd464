#include "text/subwords/byte_tokens.h"

#include <fmt/format.h>

namespace stagecraft {

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  for (std::size_t byte = 0; byte < tokens_.size(); ++byte) {
    tokens_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte));
  }
}

}  // namespace stagecraft
