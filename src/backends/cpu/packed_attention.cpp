#include "backends/cpu/packed_attention.h"

#include <algorithm>
#include <limits>

namespace stagecraft {
namespace {

constexpr std::size_t kChunk = PackedKvCache::kChunk;
constexpr std::size_t kBlock = CpuWorkspace::kScores;  // positions of one step of softmax
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Chunks lie too far apart for the hardware prefetcher to find the next; inside a long chunk it
// needs no help.
void fetch(const PanelMatrix& m) {
  constexpr std::size_t kLong = 8192;
  const std::size_t bytes = m.panel_count() * m.stride;
  if (bytes <= kLong) fetch_ahead(m.panels, bytes);
}

}  // namespace

PackedAttention::PackedAttention(std::span<const SequenceTokens> batch,
                                 const PackedWeights& weights, CpuWorkspace& w,
                                 const ThreadSlice& slice)
    : batch_(batch),
      weights_(weights),
      w_(w),
      slice_(slice),
      scratch_(slice.scratch()),
      k_(w.kernels),
      rows_(count_tokens(batch)),
      single_(rows_ == batch.size()) {}

void PackedAttention::run(const FusedAttention& step, const CacheShape& shape, bool only_scored) {
  const bool stores = step.k != kNone;
  const Layer layer{step,
                    shape,
                    step.step.n_heads / shape.n_kv_heads,
                    round_up(shape.head_dim, kPanelOutputs),
                    heads(step.step.q, step.q_rotation),
                    stores ? heads(step.k, step.k_rotation) : Heads{{}, step.k_rotation, {}},
                    stores ? buffer(step.v) : MatrixView<float>(),
                    buffer(step.step.out)};
  // In a pass over single tokens, the thread that computes a head stores its key first. In a pass
  // over several tokens, all keys have to be there before the first query.
  const bool store_first = stores && (!single_ || only_scored);
  if (store_first) {
    const Range share = slice_.share(rows_ * shape.n_kv_heads);
    for (std::size_t i = share.begin; i < share.end; ++i) {
      store_key(layer, i / shape.n_kv_heads, i % shape.n_kv_heads);
    }
    slice_.barrier();
  }
  attend(layer, stores && !store_first, only_scored);
  slice_.barrier();
}

PackedAttention::Place PackedAttention::place_of(std::size_t row) const {
  for (const SequenceTokens& one : batch_) {
    if (row < one.tokens.size()) return {one.cache, one.cache->length() + row};
    row -= one.tokens.size();
  }
  return {};
}

void PackedAttention::rotate(const Heads& heads, std::size_t row, std::size_t index,
                             std::size_t head_dim, float* out) const {
  const float* head = &heads.x(row, index * head_dim);
  if (heads.norm) {
    heads.norm.apply(k_, head, out, index);
    head = out;
  }
  const auto rope = k_.rope[static_cast<std::size_t>(heads.rotation.pairs)];
  std::size_t rotated = 0;  // columns
  for (const FrequenciesId id : heads.rotation.ropes) {
    const CpuWorkspace::Rotation& angles = w_.rotations[static_cast<std::size_t>(id)];
    const std::size_t half = angles.cos.cols();
    rope(head + rotated, angles.cos.data() + row * half, angles.sin.data() + row * half, half,
         out + rotated);
    rotated += 2 * half;
  }
  if (head != out) std::copy(head + rotated, head + head_dim, out + rotated);
}

void PackedAttention::store_key(const Layer& layer, std::size_t row, std::size_t kv_head) {
  const std::size_t head_dim = layer.shape.head_dim;
  // Not in place: a load that overlaps a recent store waits until that store is done.
  float* key = scratch_.queries.f32.data();
  rotate(layer.k, row, kv_head, head_dim, key);
  const float* value = &layer.v(row, kv_head * head_dim);
  const Place place = place_of(row);
  place.cache->put(k_, layer.step.step.cache, kv_head, place.position, key, value);
}

// Attention by tasks: some neighbouring rows of one sequence, one key and value head, all of the
// query heads that share it. A free thread takes the next task.
void PackedAttention::attend(const Layer& layer, bool stores, bool only_scored) {
  const std::size_t n_kv_heads = layer.shape.n_kv_heads;
  const std::size_t step = std::max<std::size_t>(1, k_.rows_per_share / layer.group);
  auto& next_task = w_.next_task[layer.step.index];
  std::size_t task = next_task++;
  std::size_t first_task = 0;
  std::size_t first_row = 0;
  for (const SequenceTokens& one : batch_) {
    const std::size_t skipped = only_scored ? one.unscored() : 0;
    const std::size_t rows = one.tokens.size() - skipped;
    const std::size_t tiles = (rows + step - 1) / step;
    const std::size_t tasks = tiles * n_kv_heads;
    for (; task < first_task + tasks; task = next_task++) {
      // Late rows see more: they go first, so that no thread is left with a long one at the end.
      const std::size_t tile = tiles - 1 - (task - first_task) / n_kv_heads;
      const std::size_t kv_head = (task - first_task) % n_kv_heads;
      const std::size_t row = skipped + tile * step;
      const std::size_t n = std::min(step, one.tokens.size() - row);
      if (stores) store_key(layer, first_row, kv_head);
      attend_rows(layer, *one.cache, one.cache->length() + row, first_row + row, n, kv_head);
    }
    first_task += tasks;
    first_row += one.tokens.size();
  }
}

// n rows from `row` on, at positions from `position` on; queries in the order of rows, then heads.
void PackedAttention::attend_rows(const Layer& layer, PackedKvCache& cache, std::size_t position,
                                  std::size_t row, std::size_t n, std::size_t kv_head) {
  const AttentionStep& step = layer.step.step;
  const std::size_t head_dim = layer.shape.head_dim;
  const std::size_t width = layer.padded;
  const std::size_t n_queries = n * layer.group;
  float* const out = scratch_.weighted.data();
  const float* const sinks = weights_.vector(step.sinks);
  const ActivationType type = slice_.activation_type(cache.keys(step.cache, kv_head, 0));
  const MatrixView<float> queries(scratch_.queries.f32.data(), n_queries, width);
  const std::size_t first_head = kv_head * layer.group;
  // each(query, its row, its head), for all queries
  const auto for_queries = [&](auto each) {
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t h = 0; h < layer.group; ++h) each(r * layer.group + h, r, first_head + h);
    }
  };
  // All of them at once: one after the other, each would be waited for.
  for (std::size_t r = 0; r < n; ++r) {
    fetch_ahead(&layer.q.x(row + r, first_head * head_dim), layer.group * head_dim * sizeof(float));
  }
  for_queries([&](std::size_t i, std::size_t r, std::size_t head) {
    float* query = queries.row(i).data();
    rotate(layer.q, row + r, head, head_dim, query);
    std::fill(query + head_dim, query + width, 0.0f);
    slice_.round_row(query, type, i, width, scratch_.queries);
    // Softmax begins with the sink as its first score.
    scratch_.largest[i] = sinks == nullptr ? kMasked : sinks[head];
    scratch_.total[i] = sinks == nullptr ? 0.0f : 1.0f;
    std::fill_n(out + i * width, width, 0.0f);
  });
  const std::size_t window = step.window;
  const Placement& placement = cache.placement;
  const std::size_t end = placement.seen(position + n - 1);  // of what the last of them sees
  const std::size_t first_seen = window != 0 && position + 1 > window ? position + 1 - window : 0;
  const CachedHead cached{cache, step.cache, kv_head};
  for (std::size_t begin = first_seen / kBlock * kBlock; begin < end; begin += kBlock) {
    const Block block{begin, std::min(begin + kBlock, end), std::max(begin, first_seen) / kChunk};
    score(cached, block, {&scratch_.queries, queries}, n_queries);
    for_queries([&](std::size_t i, std::size_t r, std::size_t head) {
      const std::size_t last = placement.seen(position + r);
      const std::size_t first = window != 0 && last > window ? last - window : 0;
      const float slope = step.slopes.empty() ? 0.0f : step.slopes[head];
      softmax(layer, i, begin, first, last, slope, out + i * width);
    });
    weigh(cached, block, block.end < end, n_queries, out, width);
  }
  for_queries([&](std::size_t i, std::size_t r, std::size_t head) {
    float* to = &layer.out(row + r, head * head_dim);
    const float share = 1.0f / scratch_.total[i];
    for (std::size_t d = 0; d < head_dim; ++d) to[d] = out[i * width + d] * share;
  });
}

// scores[i][j] = queries[i] . key of position block.begin + j, and some after the block's last
void PackedAttention::score(const CachedHead& head, const Block& block, const Rows& queries,
                            std::size_t n_queries) {
  for (std::size_t chunk = block.first_chunk; chunk * kChunk < block.end; ++chunk) {
    const std::size_t at = chunk * kChunk;
    const bool more = at + kChunk < block.end;
    fetch(more ? head.keys(chunk + 1) : head.values(block.first_chunk, kChunk));
    const PanelMatrix keys = head.keys(chunk);
    const std::size_t used = std::min(kChunk, block.end - at);
    const Range panels{0, (used + kPanelOutputs - 1) / kPanelOutputs};
    const std::size_t most = slice_.max_rows(keys);
    for (std::size_t i = 0; i < n_queries; i += most) {
      const std::size_t n = std::min(most, n_queries - i);
      slice_.tiles(keys, panels, queries, i, n,
                   {&scratch_.scores.f32.view()(i, at - block.begin), kBlock});
    }
  }
}

// Turns the scores of query i into probabilities, as far as they are known; [first, last) it sees.
// slope: of its head; 0: none.
void PackedAttention::softmax(const Layer& layer, std::size_t i, std::size_t begin,
                              std::size_t first, std::size_t last, float slope, float* out) {
  float* scores = &scratch_.scores.f32.view()(i, 0);
  if (first >= begin + kBlock || last <= begin) {
    std::fill_n(scores, kBlock, 0.0f);
    return;
  }
  const std::size_t from = first > begin ? first - begin : 0;
  const std::size_t to = std::min(last - begin, kBlock);
  float scale = layer.step.step.scale;
  if (const float cap = layer.step.step.soft_cap; cap != 0.0f) {
    k_.soft_cap(scores + from, to - from, scale, cap);
    scale = 1.0f;
  }
  if (slope != 0.0f) {
    const float back = static_cast<float>(last - 1) - static_cast<float>(begin + from);
    k_.alibi(scores + from, to - from, scale, slope, -back);
    scale = 1.0f;
  }
  std::fill(scores, scores + from, kMasked);
  const std::size_t n = round_up(to, kPanelOutputs);
  std::fill(scores + to, scores + n, kMasked);
  const float factor = k_.softmax_block(scores, n, scale, &scratch_.largest[i], &scratch_.total[i]);
  std::fill(scores + n, scores + kBlock, 0.0f);
  k_.scale(factor, layer.padded, out);
}

// out[i] += the sum of scores[i][j] * value of position block.begin + j. more: a block follows.
void PackedAttention::weigh(const CachedHead& head, const Block& block, bool more,
                            std::size_t n_queries, float* out, std::size_t width) {
  for (std::size_t chunk = block.first_chunk; chunk * kChunk < block.end; ++chunk) {
    const std::size_t at = chunk * kChunk;
    if (at + kChunk < block.end) {
      fetch(head.values(chunk + 1, kChunk));
    } else if (more) {
      fetch(head.keys(chunk + 1));
    }
    const PanelMatrix values = head.values(chunk, std::min(kChunk, block.end - at));
    const float* const first = &scratch_.scores.f32.view()(0, at - block.begin);
    const Rows x{&scratch_.scores, MatrixView<const float>(first, n_queries, kChunk, kBlock)};
    const ActivationType type = slice_.activation_type(values);
    for (std::size_t i = 0; i < n_queries; ++i) {
      slice_.round_row(x.f32.row(i).data(), type, i, values.inputs, scratch_.scores);
    }
    const Range panels{0, values.panel_count()};
    const std::size_t most = slice_.max_rows(values);
    for (std::size_t i = 0; i < n_queries; i += most) {
      slice_.tiles(values, panels, x, i, std::min(most, n_queries - i),
                   {out + i * width, width, true});
    }
  }
}

}  // namespace stagecraft
