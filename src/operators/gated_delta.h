#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

struct DeltaShape {
  std::size_t n_heads = 0;                 // value heads, each with its own matrix
  std::size_t n_key_heads = 0;             // divides n_heads: several value heads share a key head
  std::size_t key_dim = 0, value_dim = 0;  // numbers per head
  bool in_turn = false;  // value head h uses key head h % n_key_heads; else neighbours share one

  // The key head whose keys and queries value head `head` uses.
  std::size_t key_head(std::size_t head) const {
    return in_turn ? head % n_key_heads : head / (n_heads / n_key_heads);
  }
  std::size_t keys() const { return n_key_heads * key_dim; }
  std::size_t values() const { return n_heads * value_dim; }
};

// The gated delta rule of Gated DeltaNet (Yang et al. 2024). A head's matrix S [key_dim, value_dim]
// maps keys to values. Each token multiplies S by a number from 0 to 1 (S fades), corrects the
// value that S holds for the token's key, and reads S with the token's query:
//   S = kept * S,  kept = exp(-exp(rate) * softplus(decay + shift))
//   S = S + k (sigmoid(beta) * (v - S^T k))^T
//   out = S^T q
// Before this, q and k are divided by their lengths, and q also by sqrt(key_dim). The paper calls
// `kept` alpha_t, and sigmoid(beta) beta_t. In the files of Qwen3-Next and Qwen3.5, `rate` is
// A_log, `shift` is dt_bias, and beta and decay are the outputs of in_proj_b and in_proj_a.
//
//   in           [seq_len, 2 * keys + values]   read: q, k and v of all heads side by side
//   beta, decay  [seq_len, n_heads]             read
//   rate, shift  [n_heads]                      read
//   state        [n_heads * key_dim, value_dim]  read and written: S of each head; must be 0 before
//                                               the first token
//   out          [seq_len, values]              written; must not overlap the others
//
// Tokens are computed one after the other, so the bits do not depend on how a text is cut into
// passes. Throws Error if shapes disagree.
void gated_delta(MatrixView<const float> in, MatrixView<const float> beta,
                 MatrixView<const float> decay, std::span<const float> rate,
                 std::span<const float> shift, const DeltaShape& shape, MatrixView<float> state,
                 MatrixView<float> out);

// Added to the squared length of q or k, so that a row of zeros is not divided by 0.
inline constexpr float kDeltaEps = 1e-6f;
// kept = exp(-exp(rate) * softplus(decay)), from 0 to 1; decay includes the shift.
float delta_kept(float decay, float rate);

}  // namespace stagecraft
