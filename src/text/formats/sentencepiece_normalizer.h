#pragma once

#include <optional>

#include "text/formats/sentencepiece_model.h"
#include "text/pipeline/charsmap.h"
#include "text/pipeline/normalizer.h"
#include "text/subwords/byte_trie.h"

namespace stagecraft {

// Sentencepiece's normalization (src/normalizer.cc). The charsmap replaces characters, except in
// user-defined pieces. Spaces at both ends are dropped and runs of spaces joined. A space is put in
// front. Every space becomes U+2581. The model says which of the first three steps are used.
class SentencepieceNormalizer : public Normalizer {
 public:
  explicit SentencepieceNormalizer(const SentencepieceModel& model);

  void apply(std::string& text, bool& at_start, const GrowthLimit& limit) const override;

 private:
  Charsmap::Rule first(std::string_view text) const;

  ByteTrie user_defined_;
  std::optional<Charsmap> charsmap_;
  bool add_dummy_prefix_;
  bool remove_extra_whitespaces_;
};

}  // namespace stagecraft
