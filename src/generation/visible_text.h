#pragma once

#include <span>
#include <string>
#include <vector>

#include "generation/stop_filter.h"
#include "text/stream_decoder.h"
#include "text/unicode.h"

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
    if (tokenizer_->is_special(token)) return {};
    const std::string text = decoder_.push(token);
    characters_ += count_characters(text);
    return filter_.push(text);
  }
  // After the last token: the text that was held back; empty after a stop text.
  std::string finish() {
    std::string rest = filter_.push(decoder_.finish());
    return rest + filter_.finish();
  }
  bool stopped() const { return filter_.stopped(); }
  // The number of characters of all tokens so far, also of those that may belong to a stop text.
  std::size_t characters() const { return characters_; }

 private:
  const Tokenizer* tokenizer_;
  StreamDecoder decoder_;
  StopFilter filter_;
  std::size_t characters_ = 0;
};

}  // namespace stagecraft
