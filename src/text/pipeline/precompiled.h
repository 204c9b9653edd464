#pragma once

#include "text/pipeline/charsmap.h"
#include "text/pipeline/normalizer.h"

namespace stagecraft {

// The normalizer "Precompiled" of a tokenizer.json: sentencepiece's charsmap, in base64, as Hugging
// Face tokenizers applies it. Not character by character, but to grapheme clusters (UAX 29) of less
// than 6 bytes as a whole, by the shortest rule that one begins with; where there is none, and to
// longer ones, to each character. Mostly that is what sentencepiece does; where it is not, the
// models were trained with either.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const JsonNode& node);

  void apply(std::string& text, bool& at_start) const override;
  double growth() const override { return charsmap_.growth(); }

 private:
  Charsmap charsmap_;
};

}  // namespace stagecraft
