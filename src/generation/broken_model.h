#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

// The beginning of such an error. Callers that know the model's name put it in front.
inline constexpr std::string_view kBrokenModelPrefix = "the model ";

// The error of a model that computes NaN or infinity. `computed` names the number and its place:
// "the logit nan for token 3".
Error broken_model(std::string_view computed);

// Throws Error, as sample() does, if a logit is NaN or +infinity, or if all are -infinity.
void check_logits(std::span<const float> logits);

}  // namespace stagecraft
