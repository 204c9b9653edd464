#include "model/fast_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft {
namespace {

constexpr std::size_t kChunk = PanelCache::kChunk;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Chunks lie too far apart for the processor to foresee the next; once it is in a long one, it
// needs no help.
void fetch(const PanelMatrix& m) {
  constexpr std::size_t kLong = 8192;
  const std::size_t bytes = m.panel_count() * m.stride;
  if (bytes <= kLong) fetch_ahead(m.panels, bytes);
}

}  // namespace

FastAttention::FastAttention(const Config& config, std::span<const SequenceTokens> batch,
                             FastWorkspace& w, const FastPart& part)
    : config_(config),
      batch_(batch),
      w_(w),
      part_(part),
      scratch_(part.scratch()),
      k_(w.kernels),
      rows_(count_tokens(batch)),
      single_(rows_ == batch.size()) {}

void FastAttention::run(std::size_t layer, const PackedLayer& p, bool only_scored) {
  // A pass over single tokens: whoever computes a head stores its key first. Over several, all
  // keys have to be there before the first query.
  const bool store_first = !single_ || only_scored;
  if (store_first) {
    const Range share = part_.share(rows_ * config_.n_kv_heads);
    for (std::size_t i = share.begin; i < share.end; ++i) {
      store_key(layer, p, i / config_.n_kv_heads, i % config_.n_kv_heads);
    }
    part_.barrier();
  }
  attend(layer, p, store_first, only_scored);
  part_.barrier();
}

FastAttention::Place FastAttention::place_of(std::size_t row) const {
  for (const SequenceTokens& one : batch_) {
    if (row < one.tokens.size()) return {one.cache, one.cache->length() + row};
    row -= one.tokens.size();
  }
  return {};
}

void FastAttention::rope(const float* head, std::size_t row, const std::vector<float>& norm,
                         float* out) const {
  if (!norm.empty()) {
    k_.rms_norm(head, norm.data(), norm.size(), config_.norm_eps, out);
    head = out;
  }
  k_.rope(head, w_.cos.view().row(row).data(), w_.sin.view().row(row).data(), w_.cos.cols(), out);
}

void FastAttention::store_key(std::size_t layer, const PackedLayer& p, std::size_t row,
                              std::size_t kv_head) {
  // Not in place: a load that overlaps with a store a moment ago waits until that is done.
  float* key = scratch_.queries.f32.data();
  rope(&w_.k.view()(row, kv_head * config_.head_dim), row, p.k_norm, key);
  const float* value = &w_.v.view()(row, kv_head * config_.head_dim);
  const Place place = place_of(row);
  place.cache->put(k_, layer, kv_head, place.position, key, value);
}

// Attention by tasks: some neighbouring rows of one sequence, one key and value head, all of the
// query heads that share it. Whichever thread is free takes the next.
void FastAttention::attend(std::size_t layer, const PackedLayer& p, bool stored, bool only_scored) {
  const std::size_t group = config_.n_heads / config_.n_kv_heads;
  const std::size_t step = std::max<std::size_t>(1, kTileRows / group);
  std::size_t task = w_.next_task[layer]++;
  std::size_t first_task = 0;
  std::size_t first_row = 0;
  for (const SequenceTokens& one : batch_) {
    const std::size_t skipped = only_scored ? one.unscored() : 0;
    const std::size_t rows = one.tokens.size() - skipped;
    const std::size_t tiles = (rows + step - 1) / step;
    const std::size_t tasks = tiles * config_.n_kv_heads;
    for (; task < first_task + tasks; task = w_.next_task[layer]++) {
      // Late rows see more: they go first, so that no thread is left with a long one at the end.
      const std::size_t tile = tiles - 1 - (task - first_task) / config_.n_kv_heads;
      const std::size_t kv_head = (task - first_task) % config_.n_kv_heads;
      const std::size_t row = skipped + tile * step;
      const std::size_t n = std::min(step, one.tokens.size() - row);
      if (!stored) store_key(layer, p, first_row, kv_head);
      attend_rows(layer, p, *one.cache, one.cache->length() + row, first_row + row, n, kv_head);
    }
    first_task += tasks;
    first_row += one.tokens.size();
  }
}

// n rows from `row` on, at positions from `position` on; queries in the order of rows, then
// heads.
void FastAttention::attend_rows(std::size_t layer, const PackedLayer& p, PanelCache& cache,
                                std::size_t position, std::size_t row, std::size_t n,
                                std::size_t kv_head) {
  const std::size_t head_dim = config_.head_dim;
  const std::size_t group = config_.n_heads / config_.n_kv_heads;
  const std::size_t queries = n * group;
  const std::size_t width = scratch_.weighted.cols();
  const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  const std::size_t window = config_.windows[layer];
  float* const out = scratch_.weighted.data();
  const RowForm form = part_.row_form(cache.keys(layer, kv_head, 0));
  for (std::size_t i = 0; i < queries; ++i) {
    float* query = &scratch_.queries.f32.view()(i, 0);
    const std::size_t head = kv_head * group + i % group;
    rope(&w_.q.view()(row + i / group, head * head_dim), row + i / group, p.q_norm, query);
    part_.round_row(query, form, i, width, scratch_.queries);
    scratch_.largest[i] = kMasked;
    scratch_.total[i] = 0.0f;
    std::fill_n(out + i * width, width, 0.0f);
  }
  const std::size_t end = position + n;  // of what the last of them sees
  const std::size_t first_seen = window != 0 && position + 1 > window ? position + 1 - window : 0;
  for (std::size_t begin = first_seen / kChunk * kChunk; begin < end; begin += kChunk) {
    const std::size_t chunk = begin / kChunk;
    const std::size_t used = std::min(kChunk, end - begin);
    const bool more = begin + kChunk < end;
    if (more) fetch(cache.keys(layer, kv_head, chunk + 1));
    score(cache.keys(layer, kv_head, chunk), queries, used);
    for (std::size_t i = 0; i < queries; ++i) {
      const std::size_t last = position + i / group + 1;  // sees itself and what came before
      const std::size_t first = window != 0 && last > window ? last - window : 0;
      softmax(i, begin, first, last, scale, out + i * width, width);
    }
    if (more) fetch(cache.values(layer, kv_head, chunk + 1, kChunk));
    weigh(cache.values(layer, kv_head, chunk, used), queries, out, width);
  }
  for (std::size_t i = 0; i < queries; ++i) {
    const std::size_t head = kv_head * group + i % group;
    float* to = &w_.attention_out.view()(row + i / group, head * head_dim);
    const float share = 1.0f / scratch_.total[i];
    for (std::size_t d = 0; d < head_dim; ++d) to[d] = out[i * width + d] * share;
  }
}

// scores[i][j] = queries[i] . key j, for the chunk's first `used` positions and some after them
void FastAttention::score(const PanelMatrix& keys, std::size_t queries, std::size_t used) {
  const Rows x{&scratch_.queries, scratch_.queries.f32.view()};
  for (std::size_t panel = 0; panel * kPanelOutputs < used; ++panel) {
    for (std::size_t i = 0; i < queries; i += part_.max_rows(keys)) {
      const std::size_t n = std::min(part_.max_rows(keys), queries - i);
      part_.tile(keys, panel, x, i, n, {&scratch_.scores.view()(i, panel * kPanelOutputs), kChunk});
    }
  }
}

// Turns the scores of query i into probabilities, as far as they are known; [first, last) it
// sees.
void FastAttention::softmax(std::size_t i, std::size_t begin, std::size_t first, std::size_t last,
                            float scale, float* out, std::size_t width) {
  float* scores = &scratch_.scores.view()(i, 0);
  if (first >= begin + kChunk || last <= begin) {
    std::fill_n(scores, kChunk, 0.0f);
    return;
  }
  const std::size_t from = first > begin ? first - begin : 0;
  const std::size_t to = std::min(last - begin, kChunk);
  std::fill(scores, scores + from, kMasked);
  const std::size_t n = round_up(to, kPanelOutputs);
  std::fill(scores + to, scores + n, kMasked);
  const float factor = k_.softmax_block(scores, n, scale, &scratch_.largest[i], &scratch_.total[i]);
  std::fill(scores + n, scores + kChunk, 0.0f);
  k_.scale(factor, width, out);
}

// out[i] += the sum of scores[i][j] * value j
void FastAttention::weigh(const PanelMatrix& values, std::size_t queries, float* out,
                          std::size_t width) {
  const Rows x{nullptr, scratch_.scores.view()};
  for (std::size_t panel = 0; panel < values.panel_count(); ++panel) {
    for (std::size_t i = 0; i < queries; i += part_.max_rows(values)) {
      const std::size_t n = std::min(part_.max_rows(values), queries - i);
      part_.tile(values, panel, x, i, n, {out + i * width + panel * kPanelOutputs, width, true});
    }
  }
}

}  // namespace stagecraft
