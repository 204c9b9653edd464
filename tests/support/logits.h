#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "base/token.h"
#include "inspection/trace.h"

namespace stagecraft {

// Token ids that exist in every tiny model.
inline const std::vector<TokenId> kEightIds = {1, 7, 30, 36, 3, 3, 12, 25};

// The logits of each of kEightIds, computed in one pass: [8, vocab_size].
inline std::vector<float> logits_of(Engine engine) {
  const std::size_t passes[] = {kEightIds.size()};
  const auto activations = trace(engine, kEightIds, passes);
  const Matrix<float>& logits = activations.back().values;
  return {logits.data(), logits.data() + logits.rows() * logits.cols()};
}

}  // namespace stagecraft
