#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "generation/sampler.h"

namespace stagecraft {

// What a client can ask about the token that comes after a text.
enum class GlassView {
  Choices,    // which tokens could come next, and what sampling does to their probabilities
  Attention,  // how much each head of each layer attends to each token
  Layers,     // which next token each layer would guess
  Steps,      // time and bytes of each step of the plan
};

struct GlassRequest {
  GlassView view = GlassView::Choices;
  std::vector<TokenId> tokens;  // 1 to `context`, each a row of the embedding
  std::optional<TokenId> next;  // the token that follows in the text; the answer always lists it
  SamplerOptions sampler;
  float repeat_penalty = 1.0f;
  std::size_t repeat_last_n = 64;
  float min_p = 0.0f;
  std::size_t top = 10;  // how many of the most likely tokens are in the answer
};

}  // namespace stagecraft
