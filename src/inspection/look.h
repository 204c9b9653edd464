#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generation/session.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The results of a model for the last token of a text, step by step.
struct Look {
  // One named result of the plan.
  struct Step {
    int layer;  // -1 outside the layers
    std::string name;
    double seconds;  // the time, with that of unnamed steps before it (the store to the cache)
    double bytes;    // weights, keys and values that the step reads for one token, as f32
  };
  struct Attention {
    int layer;
    Matrix<float> probabilities;  // [n_heads, seq_len]: of the last token
  };
  Matrix<float> residuals;           // [n_layers, dim]: the residual stream after each layer
  std::vector<Attention> attention;  // of the layers that have attention
  std::vector<float> logits;         // [vocab_size], for the next token
  std::vector<Step> steps;           // in the order of computation
};

// Computes the text in `session`, and keeps the results of the last token's pass. The engine of the
// session must have the textbook backend. Tokens that the session already holds are not computed
// again. The numbers equal those of trace() bit for bit, because they do not depend on how a text
// is cut into passes.
//
//   tokens  [seq_len]  1 to session.context()
//   go_on   called between passes of a long text; if it returns false, there is no result
//
// Throws Error if an id is out of range, or if no text of this model can begin with these tokens.
std::optional<Look> look(Session& session, std::span<const TokenId> tokens,
                         const std::function<bool()>& go_on = {});

// A layer's guess of the next token: the final norm and the output head, applied to a row of the
// residual stream (the "logit lens", nostalgebraist 2020). For the row after the last layer, the
// result is the model's logits.
//
//   residual  [dim]         read
//   logits    [vocab_size]  written
void guess(Engine& engine, std::span<const float> residual, std::span<float> logits);

}  // namespace stagecraft
