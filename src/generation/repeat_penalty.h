#pragma once

#include <span>

#include "base/token.h"

namespace stagecraft {

// Makes repetition less likely (Keskar et al. 2019, section 4.1): the logit of every token in
// `recent` is divided by the penalty if positive, else multiplied; once, however often the token
// occurs.
//
//   logits   [vocab_size]  read and written
//   recent   the last tokens; ids outside the vocabulary are skipped
//   penalty  1 changes nothing, 1.1 a little; above 0
void penalize_repeats(std::span<float> logits, std::span<const TokenId> recent, float penalty);

}  // namespace stagecraft
