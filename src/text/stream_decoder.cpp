#include "text/stream_decoder.h"

#include "base/utf8.h"
#include "text/tokenizer_impl.h"

namespace stagecraft {

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, std::span<const TokenId> context)
    : tokenizer_(&tokenizer), decoding_(tokenizer.impl_->decoder) {
  for (const TokenId id : context) push(id);
}

std::string StreamDecoder::push(TokenId id) {
  const auto text = tokenizer_->impl_->text_to_decode(id);
  if (!text) return {};
  decoding_.push(*text);
  return whole_characters(false);
}

std::string StreamDecoder::finish() {
  decoding_.finish();
  return whole_characters(true);
}

std::string StreamDecoder::whole_characters(bool at_end) {
  bytes_ += decoding_.take();
  const std::size_t held = at_end ? 0 : utf8_incomplete_tail(bytes_);
  const std::size_t end = bytes_.size() - held;
  std::string text = utf8_with_replacements(std::string_view(bytes_).substr(0, end));
  bytes_.erase(0, end);
  return text;
}

}  // namespace stagecraft
