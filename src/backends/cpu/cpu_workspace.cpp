#include "backends/cpu/cpu_workspace.h"

#include <algorithm>

#include "backends/cpu/packed_kv_cache.h"
#include "base/round_up.h"

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
    if (const auto* embed = std::get_if<EmbedStep>(&step); embed && embed->positions != kNone) {
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

// What a pass of `rows` rows needs: a workspace is made from these sizes, and its bytes are counted
// from them.
struct Sizes {
  Sizes(const Plan& plan, const FusedPlan& fused, std::size_t rows)
      : dense{rows, prepared_width(plan, fused)}, gated{rows, gated_width(plan, fused)} {
    std::size_t widest = 0;
    for (const FusedStep& step : fused.steps) {
      const auto* one = std::get_if<FusedExperts>(&step);
      if (one == nullptr) continue;
      const std::size_t n = one->n_chosen, width = one->width;
      experts = std::max(experts, one->step.experts.size());
      slots_per_row = std::max(slots_per_row, n);
      hidden.width = std::max(hidden.width, n * f32_stride(width));
      widest = std::max({widest, width, plan.buffer(one->step.in).width});
    }
    hidden.rows = rows;
    slots = {rows * slots_per_row, widest};
  }

  RowsSize dense;                 // rows that are normed, added, or multiplied by a linear
  RowsSize gated;                 // results of gates that may be written only rounded
  RowsSize slots = {};            // input rows of experts, or of their `down`
  RowsSize hidden = {};           // numbers inside all experts of a row, with their strides
  std::size_t experts = 0;        // the largest number in a step
  std::size_t slots_per_row = 0;  // the largest number
};

std::size_t blocks_of(std::size_t width) { return width / kQuantBlock; }
bool needs_q8_k(const Kernels& kernels) { return kernels.to_q8_k != nullptr; }

// The numbers in the largest of some sizes.
template <class Stride>
std::size_t largest(std::initializer_list<RowsSize> sizes, Stride stride) {
  std::size_t numbers = 0;
  for (const auto& [rows, width] : sizes) numbers = std::max(numbers, rows * stride(width));
  return numbers;
}

}  // namespace

// Each matrix is one piece of memory; its users divide it into rows.
RoundedRows::RoundedRows(const Kernels& kernels, std::initializer_list<RowsSize> sizes)
    : bf16(1, largest(sizes, bf16_stride)),
      q8(1, largest(sizes, q8_stride)),
      scales(1, largest(sizes, blocks_of)),
      sums(1, largest(sizes, blocks_of)),
      q8_k(1, needs_q8_k(kernels) ? largest(sizes, q8_k_stride) : 0) {}

PreparedRows::PreparedRows(const Kernels& kernels, std::initializer_list<RowsSize> sizes)
    : RoundedRows(kernels, sizes), f32(1, largest(sizes, f32_stride)) {}

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
  std::size_t queries = table.min_rows_per_thread;
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
  const Sizes sizes(plan, fused, rows);
  const std::size_t padded = round_up(head_dim, kPanelOutputs);
  hidden = Matrix<float>(sizes.hidden.rows, sizes.hidden.width);
  gated = RoundedRows(table, {sizes.gated});
  joined = AttentionSums(kFewRows * n_heads, padded);
  n_joined = std::vector<ThreadPool::Count>(kFewRows * n_kv_heads);
  if (n_threads > 1) prepared = PreparedRows(table, {sizes.dense, sizes.slots});
  for (Scratch& one : scratch) {
    const bool first = &one == &scratch.front();  // computes short passes alone
    const std::size_t widest = std::max(sizes.dense.width, sizes.slots.width);
    one.prepared = first ? PreparedRows(table, {sizes.dense, sizes.slots})
                         : PreparedRows(table, {{kFewRows, widest}});
    one.slots.rows.reserve(sizes.slots.rows);
    one.slots.experts.reserve(sizes.experts);
    one.tile = Matrix<float>(2 * kMostTileRows, kPanelOutputs);
    one.queries = PreparedRows(table, {{queries, padded}});
    one.scores = PreparedRows(table, {{queries, kScoreStride}});
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
    const double q8_k = count(sizeof(Q8KBlock)) * count(largest(sizes, q8_k_stride));
    return 2.0 * count(largest(sizes, bf16_stride)) + count(largest(sizes, q8_stride)) +
           count(sizeof(float) + sizeof(BlockSums)) * count(largest(sizes, blocks_of)) +
           (needs_q8_k(kernels()) ? q8_k : 0.0);
  };
  const Sizes sizes(plan, fused, 1);  // all of them are proportional to the rows
  row += count(sizes.hidden.width + largest({sizes.dense, sizes.slots}, f32_stride));
  return count(max_rows) *
         (sizeof(float) * row + rounded({sizes.dense, sizes.slots}) + rounded({sizes.gated}));
}

}  // namespace stagecraft
