#pragma once

#include "text/pipeline/charsmap.h"
#include "text/pipeline/normalizer.h"

namespace stagecraft {

// The normalizer "Precompiled" of a tokenizer.json: sentencepiece's charsmap, in base64, as Hugging
// Face tokenizers applies it. If a grapheme cluster (UAX 29) has less than 6 bytes and begins with
// the text of a rule, the shortest such rule replaces the whole cluster. Otherwise each character
// is replaced on its own. Usually sentencepiece gives the same result. Where it does not, some
// models were trained with sentencepiece and some with Hugging Face tokenizers.
class Precompiled : public Normalizer {
 public:
  explicit Precompiled(const JsonNode& node);

  void apply(std::string& text, bool& at_start, const GrowthLimit& limit) const override;

 private:
  Charsmap charsmap_;
};

}  // namespace stagecraft
