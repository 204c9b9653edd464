#include "generation/broken_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stagecraft {

Error broken_model(std::string_view computed) {
  return Error("{}computed {}: the weights are broken, or the code that computes with them",
               kBrokenModelPrefix, computed);
}

void check_logits(std::span<const float> logits) {
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i]) && logits[i] != INFINITY) continue;
    throw broken_model(fmt::format("the logit {} for token {}", logits[i], i));
  }
  if (std::ranges::all_of(logits, [](float logit) { return std::isinf(logit); })) {
    throw Error("{}gives every token the probability 0", kBrokenModelPrefix);
  }
}

}  // namespace stagecraft
