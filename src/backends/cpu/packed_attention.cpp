#include "backends/cpu/packed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/round_up.h"

namespace stagecraft {
namespace {

constexpr std::size_t kChunk = PackedKvCache::kChunk;
constexpr std::size_t kBlock = CpuWorkspace::kScores;  // positions per step of online softmax
constexpr std::size_t kSegment = 2 * kBlock;  // positions that one thread attends to at a time
constexpr float kMasked = -std::numeric_limits<float>::infinity();
constexpr float kLog2E = std::numbers::log2e_v<float>;  // e^x = 2^(x * kLog2E)

// The first position that a query attends to. end: the position behind its last. window: 0 if there
// is none.
std::size_t first_seen(std::size_t end, std::size_t window) {
  return window != 0 && end > window ? end - window : 0;
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
                    stores ? w_.buffer(step.v) : MatrixView<float>(),
                    w_.buffer(step.step.out)};
  // If each sequence has one token, the thread that computes a head stores its key first.
  // Otherwise, all keys must be stored before the first query is computed.
  const bool store_first = stores && (!single_ || only_scored);
  if (store_first) {
    const Range mine = slice_.of(rows_ * shape.n_kv_heads);
    for (std::size_t i = mine.begin; i < mine.end; ++i) {
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

// A free thread takes the next task.
void PackedAttention::attend(const Layer& layer, bool stores, bool only_scored) {
  const std::size_t n_kv_heads = layer.shape.n_kv_heads;
  const std::size_t step = std::max<std::size_t>(1, k_.min_rows_per_thread / layer.group);
  const bool by_segments = single_ && rows_ <= kFewRows;
  auto& next_task = w_.next_task[layer.step.index];
  std::size_t task = next_task++;
  std::size_t first_task = 0;
  std::size_t first_row = 0;
  for (const SequenceTokens& one : batch_) {
    const std::size_t skipped = only_scored ? one.unscored() : 0;
    const std::size_t rows = one.tokens.size() - skipped;
    const std::size_t tiles = (rows + step - 1) / step;
    const auto task_of = [&](std::size_t tile, std::size_t kv_head) {
      const std::size_t row = skipped + tile * step;
      const std::size_t n = std::min(step, one.tokens.size() - row);
      return Task{*one.cache, one.cache->length() + row, first_row + row, n, kv_head};
    };
    const Range parts = by_segments && rows > 0 ? segments(layer, task_of(0, 0)) : Range{0, 1};
    const std::size_t tasks = tiles * n_kv_heads * parts.size();
    for (; task < first_task + tasks; task = next_task++) {
      const std::size_t index = (task - first_task) / n_kv_heads;
      const std::size_t kv_head = (task - first_task) % n_kv_heads;
      if (by_segments) {
        const std::size_t segment = parts.begin + index;
        if (stores && segment + 1 == parts.end) store_key(layer, first_row, kv_head);
        attend_segment(layer, task_of(0, kv_head), parts, segment);
      } else {
        if (stores) store_key(layer, first_row, kv_head);
        // Later rows attend to more positions. They go first, so that no long task begins at the
        // end.
        attend_rows(layer, task_of(tiles - 1 - index, kv_head));
      }
    }
    first_task += tasks;
    first_row += one.tokens.size();
  }
}

void PackedAttention::attend_rows(const Layer& layer, const Task& task) {
  const Sums part(scratch_.segment, 0), whole(scratch_.whole, 0);
  prepare_queries(layer, task);
  Range all = segments(layer, task);
  if (layer.step.step.sinks == kNone) {
    // Nothing comes before the first segment, so joining it would change no bit.
    sum_segment(layer, task, all.begin++, whole);
  } else {
    begin(layer, task, whole);
  }
  for (std::size_t segment = all.begin; segment < all.end; ++segment) {
    sum_segment(layer, task, segment, part);
    join(layer, task, part, whole);
  }
  write_result(layer, task, whole);
}

void PackedAttention::attend_segment(const Layer& layer, const Task& task, Range segments,
                                     std::size_t segment) {
  const Sums part(scratch_.segment, 0);
  prepare_queries(layer, task);
  sum_segment(layer, task, segment, part);

  const Sums whole(w_.joined, (task.row * layer.shape.n_kv_heads + task.kv_head) * layer.group);
  ThreadPool::Count& n_joined = w_.n_joined[task.row * layer.shape.n_kv_heads + task.kv_head];
  w_.threads.wait_for(n_joined, static_cast<std::uint32_t>(segment - segments.begin));
  if (segment == segments.begin) begin(layer, task, whole);
  join(layer, task, part, whole);
  const bool is_last = segment + 1 == segments.end;
  if (is_last) write_result(layer, task, whole);
  ThreadPool::set(n_joined, is_last ? 0 : static_cast<std::uint32_t>(segment + 1 - segments.begin));
}

Range PackedAttention::segments(const Layer& layer, const Task& task) const {
  const std::size_t first = first_seen(task.position + 1, layer.step.step.window);
  const std::size_t end = task.cache.placement.seen(task.position + task.n - 1);
  return {first / kSegment, (end + kSegment - 1) / kSegment};
}

void PackedAttention::prepare_queries(const Layer& layer, const Task& task) {
  const std::size_t head_dim = layer.shape.head_dim;
  const std::size_t width = layer.padded;
  const ActivationType type =
      slice_.activation_type(task.cache.keys(layer.step.step.cache, task.kv_head, 0));
  const std::size_t first_head = task.kv_head * layer.group;
  // Prefetches all queries at once; otherwise the loop below would wait for each one.
  for (std::size_t r = 0; r < task.n; ++r) {
    fetch_ahead(&layer.q.x(task.row + r, first_head * head_dim),
                layer.group * head_dim * sizeof(float));
  }
  const MatrixView<float> queries(scratch_.queries.f32.data(), task.n * layer.group, width);
  for_queries(layer, task, [&](std::size_t i, std::size_t r, std::size_t head) {
    float* query = queries.row(i).data();
    rotate(layer.q, task.row + r, head, head_dim, query);
    std::fill(query + head_dim, query + width, 0.0f);
    slice_.round_row(query, type, i, width, scratch_.queries);
  });
}

// Initialises softmax, with the sink as its first score if there are sinks.
void PackedAttention::begin(const Layer& layer, const Task& task, const Sums& sums) const {
  const float* const sinks = weights_.vector(layer.step.step.sinks);
  for_queries(layer, task, [&](std::size_t i, std::size_t, std::size_t head) {
    sums.largest[i] = sinks == nullptr ? kMasked : sinks[head] * kLog2E;
    sums.total[i] = sinks == nullptr ? 0.0f : 1.0f;
    std::fill_n(sums.weighted + i * layer.padded, layer.padded, 0.0f);
  });
}

// Computes the sums of one segment.
void PackedAttention::sum_segment(const Layer& layer, const Task& task, std::size_t segment,
                                  const Sums& sums) {
  const AttentionStep& step = layer.step.step;
  const std::size_t width = layer.padded;
  const std::size_t n_queries = task.n * layer.group;
  std::fill_n(sums.largest, n_queries, kMasked);
  std::fill_n(sums.total, n_queries, 0.0f);
  std::fill_n(sums.weighted, n_queries * width, 0.0f);
  const MatrixView<const float> queries(scratch_.queries.f32.data(), n_queries, width);
  const std::size_t window = step.window;
  const Placement& placement = task.cache.placement;
  const std::size_t end =
      std::min(placement.seen(task.position + task.n - 1), (segment + 1) * kSegment);
  const std::size_t first_of_all = first_seen(task.position + 1, window);
  const CachedHead cached{task.cache, step.cache, task.kv_head};
  for (std::size_t begin = std::max(first_of_all / kBlock * kBlock, segment * kSegment);
       begin < end; begin += kBlock) {
    const Block block{begin, std::min(begin + kBlock, end), std::max(begin, first_of_all) / kChunk};
    score(cached, block, {&scratch_.queries, queries}, n_queries);
    for_queries(layer, task, [&](std::size_t i, std::size_t r, std::size_t head) {
      const std::size_t last = placement.seen(task.position + r);
      const std::size_t first = first_seen(last, window);
      const float slope = step.slopes.empty() ? 0.0f : step.slopes[head];
      softmax(layer, i, block, first, last, slope, sums);
    });
    weigh(cached, block, block.end < end, n_queries, sums.weighted, width);
  }
}

// whole += part
void PackedAttention::join(const Layer& layer, const Task& task, const Sums& part,
                           const Sums& whole) const {
  for (std::size_t i = 0; i < task.n * layer.group; ++i) {
    if (part.total[i] == 0.0f) continue;  // this query does not attend to the segment
    const float largest = std::max(whole.largest[i], part.largest[i]);
    const float of_whole = std::exp2(whole.largest[i] - largest);
    const float of_part = std::exp2(part.largest[i] - largest);
    whole.largest[i] = largest;
    whole.total[i] = whole.total[i] * of_whole + part.total[i] * of_part;
    float* const sums = whole.weighted + i * layer.padded;
    const float* const more = part.weighted + i * layer.padded;
    for (std::size_t d = 0; d < layer.padded; ++d) sums[d] = sums[d] * of_whole + more[d] * of_part;
  }
}

void PackedAttention::write_result(const Layer& layer, const Task& task, const Sums& sums) const {
  const std::size_t head_dim = layer.shape.head_dim;
  for_queries(layer, task, [&](std::size_t i, std::size_t r, std::size_t head) {
    float* to = &layer.out(task.row + r, head * head_dim);
    const float inverse = 1.0f / sums.total[i];
    for (std::size_t d = 0; d < head_dim; ++d)
      to[d] = sums.weighted[i * layer.padded + d] * inverse;
  });
}

// scores[i][j] = queries[i] . key of position block.begin + j. Also writes some scores behind the
// block's last.
void PackedAttention::score(const CachedHead& head, const Block& block, const Rows& queries,
                            std::size_t n_queries) {
  for (std::size_t chunk = block.first_chunk; chunk * kChunk < block.end; ++chunk) {
    const std::size_t at = chunk * kChunk;
    const bool more = at + kChunk < block.end;
    const std::byte* next =
        more ? head.keys(chunk + 1).panels : head.values(block.first_chunk, kChunk).panels;
    const PanelMatrix keys = head.keys(chunk);
    const std::size_t used = std::min(kChunk, block.end - at);
    const Range panels{0, panels_of(used)};
    const std::size_t most = slice_.max_rows(keys);
    for (std::size_t i = 0; i < n_queries; i += most) {
      const std::size_t n = std::min(most, n_queries - i);
      slice_.tiles(keys, panels, queries, i, n,
                   {scores_of(i) + at - block.begin, CpuWorkspace::kScoreStride}, {}, next);
      next = keys.panels;
    }
  }
}

// One step of online softmax for query i, which attends to positions [first, last). slope: of its
// head; 0: none.
void PackedAttention::softmax(const Layer& layer, std::size_t i, const Block& block,
                              std::size_t first, std::size_t last, float slope, const Sums& sums) {
  float* scores = scores_of(i);
  const std::size_t begin = block.begin;
  const std::size_t read = round_up(block.end - begin, kPanelOutputs);  // at most, by weigh()
  if (first >= begin + kBlock || last <= begin) {
    std::fill_n(scores, read, 0.0f);
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
  const float factor =
      k_.softmax_block(scores, n, scale * kLog2E, &sums.largest[i], &sums.total[i]);
  std::fill(scores + n, scores + read, 0.0f);
  k_.scale(factor, layer.padded, sums.weighted + i * layer.padded);
}

// out[i] += the sum of scores[i][j] * value of position block.begin + j. more: another block
// follows.
void PackedAttention::weigh(const CachedHead& head, const Block& block, bool more,
                            std::size_t n_queries, float* out, std::size_t width) {
  for (std::size_t chunk = block.first_chunk; chunk * kChunk < block.end; ++chunk) {
    const std::size_t at = chunk * kChunk;
    const std::byte* next = nullptr;
    if (at + kChunk < block.end) {
      next = head.values(chunk + 1, kChunk).panels;
    } else if (more) {
      next = head.keys(chunk + 1).panels;
    }
    const PanelMatrix values = head.values(chunk, std::min(kChunk, block.end - at));
    const float* const first = scores_of(0) + at - block.begin;
    const Rows x{&scratch_.scores,
                 MatrixView<const float>(first, n_queries, kChunk, CpuWorkspace::kScoreStride)};
    const ActivationType type = slice_.activation_type(values);
    for (std::size_t i = 0; i < n_queries; ++i) {
      slice_.round_row(x.f32.row(i).data(), type, i, values.inputs, scratch_.scores);
    }
    const Range panels{0, values.panel_count()};
    const std::size_t most = slice_.max_rows(values);
    for (std::size_t i = 0; i < n_queries; i += most) {
      slice_.tiles(values, panels, x, i, std::min(most, n_queries - i),
                   {out + i * width, width, true}, {}, next);
    }
  }
}

}  // namespace stagecraft
