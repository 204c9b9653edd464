#pragma once

#include <optional>

#include "text/formats/sentencepiece_model.h"
#include "text/pipeline/charsmap.h"
#include "text/pipeline/normalizer.h"
#include "text/subwords/byte_trie.h"

namespace stagecraft {

// What sentencepiece does to a text first (src/normalizer.cc): characters mapped by the charsmap,
// but for the pieces that a user has defined; blanks at both ends dropped and others joined; a
// space put in front; and every space written as U+2581. Which of these, the model says.
class SentencepieceNormalizer : public Normalizer {
 public:
  explicit SentencepieceNormalizer(const SentencepieceModel& model);

  void apply(std::string& text, bool& at_start) const override;
  double growth() const override;

 private:
  Charsmap::Rule first(std::string_view text) const;

  ByteTrie user_defined_;
  std::optional<Charsmap> charsmap_;
  bool add_dummy_prefix_;
  bool remove_extra_whitespaces_;
};

}  // namespace stagecraft
