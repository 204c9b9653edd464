#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "generation/session.h"
#include "tensor/matrix.h"

namespace stagecraft {

// What a model computes for the last token of a text, step by step.
struct Look {
  // One named result of the plan.
  struct Step {
    int layer;  // -1 outside the layers
    std::string name;
    double seconds;  // includes unnamed steps before it, such as the store to the cache
    double bytes;    // of weights, keys and values that it reads for one token, as f32
  };
  struct Attention {
    int layer;
    Matrix<float> shares;  // [n_heads, seq_len]: how much the token attends to each token
  };
  Matrix<float> residuals;           // [n_layers, dim]: the residual stream after each layer
  std::vector<Attention> attention;  // of the layers that attend
  std::vector<float> logits;         // [vocab_size]: the scores of the token that comes next
  std::vector<Step> steps;           // in the order of computation
};

// Computes the text in `session`, whose engine must have the textbook backend, and keeps what the
// last token's pass computes. What the session already holds of the text is not computed again.
// These are the numbers of trace(), bit for bit, because they do not depend on how a text is cut
// into passes.
//
//   tokens  [seq_len]  1 to session.context()
//   go_on   called between passes of a long text; false: there is no result
//
// Throws Error if an id is out of range, or if no text of this model begins like this.
std::optional<Look> look(Session& session, std::span<const TokenId> tokens,
                         const std::function<bool()>& go_on = {});

// A layer's guess of the next token: the final norm and the head applied to a row of the residual
// stream (the "logit lens", nostalgebraist 2020). After the last layer these are the model's
// logits.
//
//   residual  [dim]         read
//   logits    [vocab_size]  written
void guess(Engine& engine, std::span<const float> residual, std::span<float> logits);

}  // namespace stagecraft
