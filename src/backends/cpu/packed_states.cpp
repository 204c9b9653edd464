#include "backends/cpu/packed_states.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {

// Each thread computes some columns of all rows.
void PackedStates::run(const ShortConvStep& step) const {
  const auto in = w_.buffer(step.in), out = w_.buffer(step.out);
  const Range columns = slice_.columns(in.cols());
  std::size_t row = 0;
  for (const SequenceTokens& one : batch_) {
    const std::size_t n = one.tokens.size();
    convolve(step, columns, in.row_range(row, n), one.state->view(step.state),
             out.row_range(row, n));
    row += n;
  }
  slice_.barrier();
}

// The rows of one sequence; see operators/short_conv.h.
void PackedStates::convolve(const ShortConvStep& step, Range columns, MatrixView<const float> in,
                            MatrixView<float> state, MatrixView<float> out) const {
  const std::size_t past = state.rows(), n = columns.size();
  if (n == 0) return;
  const float* const bias = weights_.vector(step.bias);
  const float* const taps = weights_.vector(step.taps);  // one row per tap
  const auto row = [&](std::size_t i) {
    return (i < past ? state.row(i).data() : in.row(i - past).data()) + columns.begin;
  };
  for (std::size_t t = 0; t < in.rows(); ++t) {
    float* const to = out.row(t).data() + columns.begin;
    if (bias == nullptr) {
      std::fill_n(to, n, 0.0f);
    } else {
      std::copy_n(bias + columns.begin, n, to);
    }
    for (std::size_t j = 0; j <= past; ++j) {
      k_.add_product(taps + j * in.cols() + columns.begin, row(t + j), n, to);
    }
  }
  for (std::size_t i = 0; i < past; ++i) {
    std::copy_n(row(in.rows() + i), n, state.row(i).data() + columns.begin);
  }
}

void PackedStates::run(const DeltaStep& step, std::size_t n_rows) const {
  prepare_delta(step, n_rows);
  slice_.barrier();
  // Work is divided by sequence, head and panel of values. One panel of a matrix is small enough
  // for the L1 cache: it is used for all rows before the next panel is read.
  const DeltaShape shape = delta_shape(step);
  const std::size_t n_panels = panels_of(shape.value_dim);
  const std::size_t per_sequence = shape.n_heads * n_panels;
  const Range mine = slice_.of(batch_.size() * per_sequence);
  std::size_t row = 0, task = 0;
  for (const SequenceTokens& one : batch_) {
    const std::size_t end = std::min(mine.end, task + per_sequence);
    for (std::size_t i = std::max(mine.begin, task); i < end; ++i) {
      delta_panel(step, shape, one, row, (i - task) / n_panels, (i - task) % n_panels);
    }
    task += per_sequence;
    row += one.tokens.size();
  }
  slice_.barrier();
}

DeltaShape PackedStates::delta_shape(const DeltaStep& step) const {
  const StateShape& state = plan_.state(step.state);
  return {state.rows / step.key_dim, step.n_key_heads, step.key_dim, state.width, step.in_turn};
}

// In place: scales q and k to length 1, and computes `write_strength` from beta and `kept` from
// decay.
void PackedStates::prepare_delta(const DeltaStep& step, std::size_t n_rows) const {
  const auto in = w_.buffer(step.in), beta = w_.buffer(step.beta), decay = w_.buffer(step.decay);
  const float* const rate = weights_.vector(step.rate);
  const float* const shift = weights_.vector(step.shift);
  const float q_scale = 1.0f / std::sqrt(static_cast<float>(step.key_dim));
  const std::size_t heads = 2 * step.n_key_heads;
  const Range mine = slice_.of(n_rows);
  for (std::size_t r = mine.begin; r < mine.end; ++r) {
    for (std::size_t head = 0; head < heads; ++head) {
      float* const x = &in(r, head * step.key_dim);
      k_.l2_norm(x, step.key_dim, kDeltaEps, head < step.n_key_heads ? q_scale : 1.0f, x);
    }
    for (std::size_t head = 0; head < beta.cols(); ++head) {
      beta(r, head) = 1.0f / (1.0f + std::exp(-beta(r, head)));
      decay(r, head) = delta_kept(decay(r, head) + shift[head], rate[head]);
    }
  }
}

// Computes one panel of values of one head for all rows of a sequence; `row` is the first one.
// The state is stored panel by panel, [key_dim][32] each.
void PackedStates::delta_panel(const DeltaStep& step, const DeltaShape& shape,
                               const SequenceTokens& one, std::size_t row, std::size_t head,
                               std::size_t panel) const {
  const auto in = w_.buffer(step.in), out = w_.buffer(step.out);
  const auto write_strength = w_.buffer(step.beta), kept = w_.buffer(step.decay);
  const std::size_t key = shape.key_head(head) * shape.key_dim;
  const std::size_t value = head * shape.value_dim + panel * kPanelOutputs;
  const std::size_t n_panels = panels_of(shape.value_dim);
  const std::size_t n = std::min(kPanelOutputs, shape.value_dim - panel * kPanelOutputs);
  float* const state =
      one.state->data(step.state) + (head * n_panels + panel) * shape.key_dim * kPanelOutputs;
  for (std::size_t t = row; t < row + one.tokens.size(); ++t) {
    k_.delta_rule({.state = state,
                   .q = &in(t, key),
                   .k = &in(t, shape.keys() + key),
                   .n_keys = shape.key_dim,
                   .kept = kept(t, head),
                   .write_strength = write_strength(t, head),
                   .v = &in(t, 2 * shape.keys() + value),
                   .n_values = n,
                   .out = &out(t, value)});
  }
}

}  // namespace stagecraft
