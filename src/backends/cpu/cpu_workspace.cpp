#include "backends/cpu/cpu_workspace.h"

#include <algorithm>

#include "backends/cpu/packed_kv_cache.h"

namespace stagecraft {
namespace {

std::size_t count_attentions(const Plan& plan) {
  return static_cast<std::size_t>(std::ranges::count_if(plan.steps, [](const Step& step) {
    return std::holds_alternative<AttentionStep>(step.kind);
  }));
}

// The width of the widest row that is normed, added, or multiplied by a linear.
std::size_t prepared_width(const Plan& plan, const FusedPlan& fused) {
  std::size_t width = 0;
  for (const FusedStep& step : fused.steps) {
    const LinearInput* input = nullptr;
    if (const auto* group = std::get_if<FusedLinears>(&step)) input = &group->input;
    if (const auto* gate = std::get_if<FusedGate>(&step)) input = &gate->input;
    if (const auto* embed = std::get_if<FusedEmbed>(&step); embed && embed->positions != kNone) {
      width = std::max(width, plan.buffer(embed->out).width);
    }
    if (input != nullptr) width = std::max(width, plan.buffer(input->in).width);
    if (const auto* sum = std::get_if<FusedAdd>(&step)) {
      width = std::max(width, plan.buffer(sum->in).width);
    }
  }
  return width;
}

// The width of the widest result of a gate that may be written only rounded.
std::size_t gated_width(const Plan& plan, const FusedPlan& fused) {
  std::size_t width = 0;
  for (const FusedStep& step : fused.steps) {
    const auto* gate = std::get_if<FusedGate>(&step);
    if (gate != nullptr && !gate->readers.empty()) {
      width = std::max(width, plan.buffer(gate->out).width);
    }
  }
  return width;
}

// What the experts of a plan need per row of a pass.
struct ExpertSizes {
  std::size_t experts = 0;  // the largest number in a step
  std::size_t slots = 0;    // the largest number per row
  std::size_t hidden = 0;   // numbers inside all experts of a row, with their strides
  std::size_t widest = 0;   // of their input rows, and of those of `down`
};
ExpertSizes expert_sizes(const Plan& plan, const FusedPlan& fused) {
  ExpertSizes most;
  for (const FusedStep& step : fused.steps) {
    const auto* experts = std::get_if<FusedExperts>(&step);
    if (experts == nullptr) continue;
    const std::size_t slots = most_chosen(plan, experts->step);
    const std::size_t hidden = expert_width(plan, experts->step);
    const std::size_t widest = std::max(hidden, plan.buffer(experts->step.in).width);
    most.experts = std::max(most.experts, experts->step.experts.size());
    most.slots = std::max(most.slots, slots);
    most.hidden = std::max(most.hidden, slots * f32_stride(hidden));
    most.widest = std::max(most.widest, widest);
  }
  return most;
}

std::size_t blocks_of(std::size_t width) { return width / kQuantBlock; }

// The numbers in the largest of some sizes.
template <class Stride>
std::size_t largest(std::initializer_list<RowsSize> sizes, Stride stride) {
  std::size_t numbers = 0;
  for (const auto& [rows, width] : sizes) numbers = std::max(numbers, rows * stride(width));
  return numbers;
}

}  // namespace

// Each matrix is one piece of memory; its users divide it into rows.
RoundedRows::RoundedRows(std::initializer_list<RowsSize> sizes)
    : bf16(1, largest(sizes, bf16_stride)),
      q8(1, largest(sizes, q8_stride)),
      scales(1, largest(sizes, blocks_of)),
      sums(1, largest(sizes, blocks_of)) {}

PreparedRows::PreparedRows(std::initializer_list<RowsSize> sizes)
    : RoundedRows(sizes), f32(1, largest(sizes, f32_stride)) {}

CpuWorkspace::CpuWorkspace(const Plan& plan, const FusedPlan& fused, const Kernels& table,
                           std::size_t rows, std::size_t n_threads)
    : kernels(table),
      max_rows(rows),
      scratch(n_threads),
      next_task(count_attentions(plan)),
      threads(n_threads) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    buffers.push_back(fused.stored[i] ? FloatRows(rows, plan.buffers[i].width) : FloatRows());
  }
  for (const Frequencies& table_of_angles : plan.frequencies) {
    const std::size_t half = table_of_angles.values.size();
    rotations.push_back({Matrix<float>(rows, half), Matrix<float>(rows, half)});
  }
  std::size_t queries = table.rows_per_share;
  std::size_t head_dim = 0, n_heads = 0, n_kv_heads = 0;
  for (const FusedStep& step : fused.steps) {
    const auto* attention = std::get_if<FusedAttention>(&step);
    if (attention == nullptr) continue;
    const CacheShape& cache = plan.cache(attention->step.cache);
    queries = std::max(queries, attention->step.n_heads / cache.n_kv_heads);
    head_dim = std::max(head_dim, cache.head_dim);
    n_heads = std::max(n_heads, attention->step.n_heads);
    n_kv_heads = std::max(n_kv_heads, cache.n_kv_heads);
  }
  const ExpertSizes experts = expert_sizes(plan, fused);
  const std::size_t width = prepared_width(plan, fused);
  const RowsSize dense = {rows, width}, slots = {rows * experts.slots, experts.widest};
  const std::size_t padded = round_up(head_dim, kPanelOutputs);
  hidden = Matrix<float>(rows, experts.hidden);
  gated = RoundedRows({{rows, gated_width(plan, fused)}});
  joined = AttentionSums(kFewRows * n_heads, padded);
  turns = std::vector<ThreadPool::Count>(kFewRows * n_kv_heads);
  if (n_threads > 1) prepared = PreparedRows({dense, slots});
  for (Scratch& one : scratch) {
    const bool first = &one == &scratch.front();  // computes short passes alone
    one.prepared = first ? PreparedRows({dense, slots})
                         : PreparedRows({{kFewRows, std::max(width, experts.widest)}});
    one.slots.rows.reserve(rows * experts.slots);
    one.slots.experts.reserve(experts.experts);
    one.tile = Matrix<float>(2 * kTileRows, kPanelOutputs);
    one.queries = PreparedRows({{queries, padded}});
    one.scores = PreparedRows({{queries, kScoreStride}});
    one.segment = AttentionSums(queries, padded);
    one.whole = AttentionSums(queries, padded);
  }
}

double cpu_workspace_bytes(const Plan& plan, const FusedPlan& fused, std::size_t max_rows) {
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  double row = 0.0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (fused.stored[i]) row += count(f32_stride(plan.buffers[i].width));
  }
  for (const Frequencies& table : plan.frequencies) row += 2.0 * count(table.values.size());
  const auto rounded = [&](std::initializer_list<RowsSize> sizes) {  // bytes of RoundedRows
    return 2.0 * count(largest(sizes, bf16_stride)) + count(largest(sizes, q8_stride)) +
           count(sizeof(float) + sizeof(BlockSums)) * count(largest(sizes, blocks_of));
  };
  const ExpertSizes experts = expert_sizes(plan, fused);
  const RowsSize dense = {1, prepared_width(plan, fused)};
  const RowsSize slots = {experts.slots, experts.widest};
  row += count(experts.hidden + largest({dense, slots}, f32_stride));
  return count(max_rows) *
         (sizeof(float) * row + rounded({dense, slots}) + rounded({{1, gated_width(plan, fused)}}));
}

}  // namespace stagecraft
