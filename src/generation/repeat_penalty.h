#pragma once

#include <span>

#include "base/token.h"

namespace stagecraft {

// Makes repetition less likely (Keskar et al. 2019, section 4.1): the logit of every token in
// `recent` is divided by the penalty if it is positive, else multiplied by it. This happens once
// per token, even if it occurs several times.
//
//   logits   [vocab_size]  read and written
//   recent   the last tokens; ids outside the vocabulary are skipped
//   penalty  above 0; 1 changes nothing, 1.1 a little
void penalize_repeats(std::span<float> logits, std::span<const TokenId> recent, float penalty);

}  // namespace stagecraft
