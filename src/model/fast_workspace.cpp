#include "model/fast_workspace.h"

#include <algorithm>

#include "model/panel_cache.h"
#include "model/rope_frequencies.h"

namespace stagecraft {

PreparedRows::PreparedRows(std::size_t rows, std::size_t width)
    : f32(rows, width),
      bf16(rows, width),
      q8(rows, width),
      scales(rows, width / kQuantBlock),
      sums(rows, width / kQuantBlock) {}

FastWorkspace::FastWorkspace(const Config& config, const Kernels& table, std::size_t rows,
                             std::size_t n_threads)
    : kernels(table),
      max_rows(rows),
      inv_freq(rope_frequencies(config.rope, config.head_dim)),
      cos(rows, config.head_dim / 2),
      sin(rows, config.head_dim / 2),
      hidden(rows, config.dim),
      q(rows, config.q_dim()),
      k(rows, config.kv_dim()),
      v(rows, config.kv_dim()),
      attention_out(rows, config.q_dim()),
      gated(rows, config.ffn_dim),
      scratch(n_threads),
      next_task(config.n_layers),
      threads(n_threads) {
  const std::size_t width = std::max({config.dim, config.q_dim(), config.ffn_dim});
  const std::size_t group = config.n_heads / config.n_kv_heads;
  const std::size_t queries = std::max(kTileRows, group);
  const std::size_t padded = round_up(config.head_dim, kPanelOutputs);
  if (n_threads > 1) prepared = PreparedRows(rows, width);
  for (Scratch& one : scratch) {
    const bool first = &one == &scratch.front();  // may have to do small passes alone
    one.prepared = PreparedRows(first ? rows : std::min(rows, kFewRows), width);
    one.tile = Matrix<float>(2 * kTileRows, kPanelOutputs);
    one.queries = PreparedRows(queries, padded);
    one.scores = Matrix<float>(queries, PanelCache::kChunk);
    one.weighted = Matrix<float>(queries, padded);
    one.largest.resize(queries);
    one.total.resize(queries);
  }
}

double fast_workspace_bytes(const Config& config, std::size_t max_rows) {
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  const double width = count(std::max({config.dim, config.q_dim(), config.ffn_dim}));
  const double row = count(config.dim) + 2.0 * count(config.q_dim()) +
                     2.0 * count(config.kv_dim()) + count(config.ffn_dim) + count(config.head_dim);
  constexpr double kPrepared = 4.0 + 2.0 + 1.0 + 8.0 / kQuantBlock;  // bytes, in all forms
  return count(max_rows) * (sizeof(float) * row + kPrepared * width);
}

}  // namespace stagecraft
