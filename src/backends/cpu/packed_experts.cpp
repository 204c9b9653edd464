#include "backends/cpu/packed_experts.h"

#include <algorithm>

#include "backends/cpu/gated_panels.h"

namespace stagecraft {

void PackedExperts::run(const FusedExperts& fused, std::size_t n_rows) const {
  const ExpertsStep& step = fused.step;
  const auto in = buffer(step.in, n_rows), out = buffer(step.out, n_rows);
  const ExpertSlots& slots =
      group_by_expert(buffer(step.routing_weights, n_rows), n_rows * fused.n_chosen);
  const std::size_t width = fused.width;
  const MatrixView<float> hidden(w_.hidden.data(), slots.rows.size(), width, f32_stride(width));
  multiply_gate_and_up(step, slots, in, hidden);
  slice_.barrier();
  multiply_down(step, slots, hidden, out, fused.add);
  slice_.barrier();
}

// Each thread computes the same result. most: the slots that fit into memory. More routing weights
// than that differ from 0 only in a broken model, where a product with infinity is NaN.
const ExpertSlots& PackedExperts::group_by_expert(MatrixView<const float> routing_weights,
                                                  std::size_t most) const {
  ExpertSlots& slots = slice_.scratch().slots;
  slots.rows.clear();
  slots.experts.clear();
  for (std::size_t e = 0; e < routing_weights.cols(); ++e) {
    const std::size_t first = slots.rows.size();
    for (std::size_t r = 0; r < routing_weights.rows(); ++r) {
      if (routing_weights(r, e) != 0.0f && slots.rows.size() < most) {
        slots.rows.push_back(static_cast<std::uint32_t>(r));
      }
    }
    if (slots.rows.size() != first) slots.experts.push_back({e, first, slots.rows.size()});
  }
  return slots;
}

// For each slot, with its expert and its row: hidden = f(gate . row) * (up . row).
void PackedExperts::multiply_gate_and_up(const ExpertsStep& step, const ExpertSlots& slots,
                                         MatrixView<const float> in,
                                         MatrixView<float> hidden) const {
  ActivationTypes types = {};
  std::size_t tiles = 0;
  const std::size_t panels = panels_of(hidden.cols());
  for (const auto& [index, first, end] : slots.experts) {
    slice_.add_type(weights_.matrix(step.experts[index].gate), types);
    slice_.add_type(weights_.matrix(step.experts[index].up), types);
    tiles += panels * slice_.tile_count({first, end});
  }
  const Rows x = slice_.prepare(in, {}, types, slots.rows);
  const Range mine = slice_.of(tiles);
  std::size_t before = 0;  // tiles of the experts before this one
  for (const auto& [index, first, end] : slots.experts) {
    const std::size_t n = panels * slice_.tile_count({first, end});
    const Range some{std::clamp(mine.begin, before, before + n) - before,
                     std::clamp(mine.end, before, before + n) - before};
    const ExpertsStep::Expert& expert = step.experts[index];
    const GatedProduct product{weights_.matrix(expert.gate),
                               weights_.matrix(expert.up),
                               weights_.vector(expert.gate_bias),
                               weights_.vector(expert.up_bias),
                               step.function,
                               step.limit,
                               step.alpha};
    slice_.for_tiles(some, {first, end}, [&](Range part, Range rows) {
      gated_panels(k_, slice_, product, x, part, rows, {hidden});
    });
    before += n;
  }
}

// out = sum of routing weights * (down . hidden), or out += that sum. Each thread computes some
// columns of all rows, and adds in the order of the experts.
void PackedExperts::multiply_down(const ExpertsStep& step, const ExpertSlots& slots,
                                  MatrixView<const float> hidden, MatrixView<float> out,
                                  bool add) const {
  ActivationTypes types = {};
  for (const ExpertSlots::Expert& one : slots.experts) {
    slice_.add_type(weights_.matrix(step.experts[one.index].down), types);
  }
  const Rows x = slice_.prepare(hidden, {}, types);
  const auto routing_weights = buffer(step.routing_weights, out.rows());
  const Range columns = slice_.columns(out.cols());
  for (std::size_t r = 0; r < out.rows() && !add; ++r) {
    std::ranges::fill(out.row(r).subspan(columns.begin, columns.size()), 0.0f);
  }
  float* const values = slice_.scratch().tile.data();
  for (const auto& [index, first, end] : slots.experts) {
    const PanelMatrix& down = weights_.matrix(step.experts[index].down);
    const float* const bias = weights_.vector(step.experts[index].down_bias);
    for (std::size_t output = columns.begin; output < columns.end; output += kPanelOutputs) {
      const std::size_t n_outputs = std::min(kPanelOutputs, out.cols() - output);
      for (std::size_t s = first; s < end; s += slice_.max_rows(down)) {
        const std::size_t n = std::min(slice_.max_rows(down), end - s);
        slice_.tile(down, output / kPanelOutputs, x, s, n, {values}, {first, end});
        for (std::size_t i = 0; i < n; ++i) {
          const std::size_t row = slots.rows[s + i];
          float* const sum = &out(row, output);
          k_.add_scaled(routing_weights(row, index), values + i * kPanelOutputs, n_outputs, sum);
          if (bias != nullptr)
            k_.add_scaled(routing_weights(row, index), bias + output, n_outputs, sum);
        }
      }
    }
  }
}

}  // namespace stagecraft
