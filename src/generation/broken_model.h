#pragma once

#include <span>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

// How such an error begins. Who knows the model's name puts it before.
inline constexpr std::string_view kBrokenModel = "the model ";

// The error of a model that computes NaN or infinity. `computed` names the number and its place:
// "the logit nan for token 3".
Error broken_model(std::string_view computed);

// Throws Error, as sample() does, if a logit is NaN or +infinity, or if all are -infinity.
void check_logits(std::span<const float> logits);

}  // namespace stagecraft
