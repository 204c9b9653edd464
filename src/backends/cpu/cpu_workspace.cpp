#include "backends/cpu/cpu_workspace.h"

#include <algorithm>

#include "backends/cpu/packed_kv_cache.h"

namespace stagecraft {
namespace {

// The widest row that goes into a linear.
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

}  // namespace

PreparedRows::PreparedRows(std::size_t rows, std::size_t width)
    : f32(rows, width),
      bf16(rows, width),
      q8(rows, width),
      scales(rows, width / kQuantBlock),
      sums(rows, width / kQuantBlock) {}

CpuWorkspace::CpuWorkspace(const Plan& plan, const FusedPlan& fused, const Kernels& table,
                           std::size_t rows, std::size_t n_threads)
    : kernels(table),
      max_rows(rows),
      scratch(n_threads),
      next_task(plan.caches.size()),
      threads(n_threads) {
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    buffers.push_back(fused.stored[i] ? Matrix<float>(rows, plan.buffers[i].width)
                                      : Matrix<float>());
  }
  for (const Frequencies& table_of_angles : plan.frequencies) {
    const std::size_t half = table_of_angles.values.size();
    rotations.push_back({Matrix<float>(rows, half), Matrix<float>(rows, half)});
  }
  std::size_t queries = kTileRows;
  std::size_t head_dim = 0;
  for (const FusedStep& step : fused.steps) {
    const auto* attention = std::get_if<FusedAttention>(&step);
    if (attention == nullptr) continue;
    const CacheShape& cache = plan.cache(attention->step.cache);
    queries = std::max(queries, attention->step.n_heads / cache.n_kv_heads);
    head_dim = std::max(head_dim, cache.head_dim);
  }
  const std::size_t width = prepared_width(plan, fused);
  const std::size_t padded = round_up(head_dim, kPanelOutputs);
  if (n_threads > 1) prepared = PreparedRows(rows, width);
  for (Scratch& one : scratch) {
    const bool first = &one == &scratch.front();  // may have to do small passes alone
    one.prepared = PreparedRows(first ? rows : std::min(rows, kFewRows), width);
    one.tile = Matrix<float>(2 * kTileRows, kPanelOutputs);
    one.queries = PreparedRows(queries, padded);
    one.scores = Matrix<float>(queries, PackedKvCache::kChunk);
    one.weighted = Matrix<float>(queries, padded);
    one.largest.resize(queries);
    one.total.resize(queries);
  }
}

double cpu_workspace_bytes(const Plan& plan, const FusedPlan& fused, std::size_t max_rows) {
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  double row = 0.0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (fused.stored[i]) row += count(plan.buffers[i].width);
  }
  for (const Frequencies& table : plan.frequencies) row += 2.0 * count(table.values.size());
  constexpr double kPrepared = 4.0 + 2.0 + 1.0 + 8.0 / kQuantBlock;  // bytes, in all formats
  return count(max_rows) * (sizeof(float) * row + kPrepared * count(prepared_width(plan, fused)));
}

}  // namespace stagecraft
