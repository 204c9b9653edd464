#pragma once

#include <span>
#include <string>
#include <vector>

#include "generation/stop_filter.h"
#include "text/stream_decoder.h"

namespace stagecraft {

// The visible text of new tokens, as soon as it is certain: only whole characters, and nothing that
// may still turn out to be the beginning of a stop text. Special tokens have no text.
class VisibleText {
 public:
  // `tokenizer` must outlive this object. before: the tokens before the new ones.
  VisibleText(const Tokenizer& tokenizer, std::span<const TokenId> before,
              std::vector<std::string> stops)
      : tokenizer_(&tokenizer), decoder_(tokenizer, before), filter_(std::move(stops)) {}

  std::string push(TokenId token) {
    return tokenizer_->is_special(token) ? std::string() : filter_.push(decoder_.push(token));
  }
  // After the last token: the text that was held back; empty after a stop text.
  std::string finish() {
    std::string rest = filter_.push(decoder_.finish());
    return rest + filter_.finish();
  }
  bool stopped() const { return filter_.stopped(); }

 private:
  const Tokenizer* tokenizer_;
  StreamDecoder decoder_;
  StopFilter filter_;
};

}  // namespace stagecraft
