#include "operators/gated_delta.h"

#include <cmath>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

float inverse_length(std::span<const float> x) {
  float squares = 0.0f;
  for (const float value : x) squares += value * value;
  return 1.0f / std::sqrt(squares + kDeltaEps);
}

// One token of one head.
struct Token {
  std::span<const float> q, k, v;
  float kept, write_strength;  // write_strength: sigmoid(beta)
};
void step(const Token& token, MatrixView<float> state, std::span<float> out) {
  const float k_scale = inverse_length(token.k);
  const float q_scale = inverse_length(token.q) / std::sqrt(static_cast<float>(token.q.size()));
  for (std::size_t c = 0; c < out.size(); ++c) {
    float known = 0.0f;
    for (std::size_t i = 0; i < state.rows(); ++i) {
      state(i, c) *= token.kept;
      known += k_scale * token.k[i] * state(i, c);
    }
    const float delta = token.write_strength * (token.v[c] - known);
    float sum = 0.0f;
    for (std::size_t i = 0; i < state.rows(); ++i) {
      state(i, c) += k_scale * token.k[i] * delta;
      sum += q_scale * token.q[i] * state(i, c);
    }
    out[c] = sum;
  }
}

}  // namespace

// softplus(x) = log(1 + e^x), which in f32 equals x if x > 20.
float delta_kept(float decay, float rate) {
  constexpr float kLarge = 20.0f;
  const float softplus = decay > kLarge ? decay : std::log1p(std::exp(decay));
  return std::exp(-std::exp(rate) * softplus);
}

void gated_delta(MatrixView<const float> in, MatrixView<const float> beta,
                 MatrixView<const float> decay, std::span<const float> rate,
                 std::span<const float> shift, const DeltaShape& shape, MatrixView<float> state,
                 MatrixView<float> out) {
  if (shape.n_key_heads == 0 || shape.n_heads % shape.n_key_heads != 0) {
    throw Error("gated_delta: n_heads: expected a multiple of n_key_heads {}, found {}",
                shape.n_key_heads, shape.n_heads);
  }
  const std::size_t rows = in.rows();
  check_shape("gated_delta", "in", rows, 2 * shape.keys() + shape.values(), in);
  check_shape("gated_delta", "beta", rows, shape.n_heads, beta);
  check_shape("gated_delta", "decay", rows, shape.n_heads, decay);
  check_size("gated_delta", "rate", shape.n_heads, rate.size());
  check_size("gated_delta", "shift", shape.n_heads, shift.size());
  check_shape("gated_delta", "state", shape.n_heads * shape.key_dim, shape.value_dim, state);
  check_shape("gated_delta", "out", rows, shape.values(), out);
  for (std::size_t t = 0; t < rows; ++t) {
    for (std::size_t head = 0; head < shape.n_heads; ++head) {
      const std::size_t key = shape.key_head(head) * shape.key_dim;
      const std::size_t value = head * shape.value_dim;
      const Token token{in.row(t).subspan(key, shape.key_dim),
                        in.row(t).subspan(shape.keys() + key, shape.key_dim),
                        in.row(t).subspan(2 * shape.keys() + value, shape.value_dim),
                        delta_kept(decay(t, head) + shift[head], rate[head]),
                        1.0f / (1.0f + std::exp(-beta(t, head)))};
      step(token, state.row_range(head * shape.key_dim, shape.key_dim),
           out.row(t).subspan(value, shape.value_dim));
    }
  }
}

}  // namespace stagecraft
