#include "model/fast_forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

constexpr std::size_t kChunk = PanelCache::kChunk;
// Rows times bytes of weights for each thread, below which the threads would wait for each other
// longer than they work.
constexpr std::size_t kWorthSharing = std::size_t{1} << 20;
// A pass over less than this is done in less time than a processor stays with other work. Once one
// of the threads has had to wait for such a processor, so many passes are left to the first alone.
constexpr std::size_t kShortPass = std::size_t{8} << 20;
constexpr std::size_t kAlone = 1000;
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// Part `part` of `parts` of n things.
struct Share {
  std::size_t begin, end;
  Share(std::size_t n, std::size_t part, std::size_t parts)
      : begin(n * part / parts), end(n * (part + 1) / parts) {}
};

// Rows ready to be multiplied, wherever they lie.
struct Rows {
  const PreparedRows* prepared = nullptr;
  MatrixView<const float> f32;
};

// The way of one thread through a pass. Between two barriers no thread writes what another reads.
class Pass {
 public:
  Pass(const Config& config, const PackedModel& model, std::span<const SequenceTokens> batch,
       FastWorkspace& w, MatrixView<float> logits, std::size_t part, std::size_t parts)
      : config_(config),
        model_(model),
        batch_(batch),
        w_(w),
        logits_(logits),
        part_(part),
        parts_(parts),
        scratch_(w.scratch[part]),
        k_(w.kernels) {
    for (const SequenceTokens& one : batch) rows_ += one.tokens.size();
    single_ = rows_ == batch.size();
  }

  void run() {
    embed();
    barrier();
    for (std::size_t i = 0; i < config_.n_layers; ++i) {
      attention(i, model_.layers[i]);
      mlp(model_.layers[i]);
    }
    head();
  }

 private:
  void barrier() {
    if (parts_ > 1) w_.threads.barrier();
  }

  void embed() {
    std::size_t row = 0;
    const Share share(rows_, part_, parts_);
    const std::size_t half = w_.inv_freq.size();
    for (const SequenceTokens& one : batch_) {
      for (std::size_t t = 0; t < one.tokens.size(); ++t, ++row) {
        if (row < share.begin || row >= share.end) continue;
        const auto token = static_cast<std::size_t>(one.tokens[t]);
        read_row(*model_.embedding, token, w_.hidden.view().row(row));
        const auto position = static_cast<float>(one.cache->length() + t);
        for (std::size_t i = 0; i < half; ++i) {
          const float angle = position * w_.inv_freq[i];
          w_.cos.view()(row, i) = std::cos(angle);
          w_.sin.view()(row, i) = std::sin(angle);
        }
      }
    }
  }

  // Norms rows, where a norm is given, and puts them into the forms that the matrices' kernels ask
  // for.
  Rows prepare(MatrixView<const float> x, const std::vector<float>* norm,
               std::initializer_list<const PackedLinear*> linears) {
    bool forms[3] = {};
    for (const PackedLinear* linear : linears) {
      forms[static_cast<int>(row_form(linear->weight))] = true;
    }
    const std::size_t width = x.cols();
    const bool together = x.rows() > kFewRows && parts_ > 1;
    PreparedRows& p = together ? w_.prepared : scratch_.prepared;
    const Share share = together ? Share(x.rows(), part_, parts_) : Share(x.rows(), 0, 1);
    const MatrixView<float> normed(p.f32.data(), x.rows(), width);
    for (std::size_t r = share.begin; r < share.end; ++r) {
      const float* row = x.row(r).data();
      if (norm != nullptr) {
        k_.rms_norm(row, norm->data(), width, config_.norm_eps, normed.row(r).data());
        row = normed.row(r).data();
      }
      for (const RowForm form : {RowForm::BF16, RowForm::Q8}) {
        if (forms[static_cast<int>(form)]) round_row(row, form, r, width, p);
      }
    }
    if (together) barrier();
    return {&p, norm != nullptr ? MatrixView<const float>(normed) : x};
  }

  // Makes row r of p, which is `width` wide, in one of the forms that are rounded.
  void round_row(const float* row, RowForm form, std::size_t r, std::size_t width,
                 PreparedRows& p) const {
    if (form == RowForm::BF16) k_.to_bf16(row, width, &p.bf16.data()[r * width]);
    if (form != RowForm::Q8) return;
    const std::size_t block = r * (width / kQuantBlock);
    k_.to_q8(row, width, &p.q8.data()[r * width], &p.scales.data()[block], &p.sums.data()[block]);
  }

  // One panel of a matrix times rows [first, first + n), n at most the kernel's most;
  // out: [n, 32], its rows `out_stride` apart.
  void tile(const PanelMatrix& m, std::size_t panel, const Rows& x, std::size_t first,
            std::size_t n, float* out, std::size_t out_stride = kPanelOutputs) const {
    const std::size_t blocks = m.inputs / kQuantBlock;
    TileArgs args{m.panel(panel), m.inputs, nullptr, m.inputs,  nullptr,
                  nullptr,        blocks,   out,     out_stride};
    switch (row_form(m)) {
      case RowForm::F32:
        args.rows = x.f32.row(first).data();
        args.row_stride = x.f32.stride();
        break;
      case RowForm::BF16:
        args.rows = &x.prepared->bf16.data()[first * m.inputs];
        break;
      case RowForm::Q8:
        args.rows = &x.prepared->q8.data()[first * m.inputs];
        args.scales = &x.prepared->scales.data()[first * blocks];
        args.sums = &x.prepared->sums.data()[first * blocks];
        break;
    }
    k_.tile[static_cast<std::size_t>(m.form)][n - 1](args);
  }

  RowForm row_form(const PanelMatrix& m) const {
    return k_.row_form[static_cast<std::size_t>(m.form)];
  }
  std::size_t max_rows(const PanelMatrix& m) const {
    return k_.max_rows[static_cast<std::size_t>(m.form)];
  }

  // This thread's share of panels times rows, by tiles, so that no thread has a panel more than
  // another where there are many rows: each(panel, begin, end) for the rows [begin, end).
  template <class Each>
  void share_tiles(std::size_t panels, std::size_t rows, Each each) const {
    const std::size_t tiles = (rows + kTileRows - 1) / kTileRows;
    const Share share(panels * tiles, part_, parts_);
    for (std::size_t i = share.begin; i < share.end;) {
      const std::size_t first = i % tiles;
      const std::size_t last = std::min(tiles, first + share.end - i);
      each(i / tiles, first * kTileRows, std::min(rows, last * kTileRows));
      i += last - first;
    }
  }

  // This thread's share of x * weight^T + bias for several linears of the same rows: put(linear,
  // row, output, n, values) gets up to 32 neighbouring outputs of a row at a time.
  template <class Put>
  void linear(std::initializer_list<const PackedLinear*> linears, const Rows& x, std::size_t rows,
              Put put) {
    std::size_t panels = 0;
    for (const PackedLinear* one : linears) panels += one->weight.panel_count();
    share_tiles(panels, rows, [&](std::size_t panel, std::size_t begin, std::size_t end) {
      std::size_t which = 0;
      for (const PackedLinear* one : linears) {
        const std::size_t count = one->weight.panel_count();
        if (panel < count) return panel_times_rows(*one, panel, x, begin, end, which, put);
        panel -= count;
        ++which;
      }
    });
  }

  template <class Put>
  void panel_times_rows(const PackedLinear& linear, std::size_t panel, const Rows& x,
                        std::size_t begin, std::size_t end, std::size_t which, Put put) {
    const PanelMatrix& m = linear.weight;
    const std::size_t output = panel * kPanelOutputs;
    const std::size_t n_outputs = std::min(kPanelOutputs, m.outputs - output);
    float* out = scratch_.tile.data();
    for (std::size_t r = begin; r < end; r += max_rows(m)) {
      const std::size_t n = std::min(max_rows(m), end - r);
      tile(m, panel, x, r, n, out);
      for (std::size_t i = 0; i < n; ++i) {
        float* values = out + i * kPanelOutputs;
        if (!linear.bias.empty()) k_.add(linear.bias.data() + output, n_outputs, values);
        put(which, r + i, output, n_outputs, values);
      }
    }
  }

  void add_to_hidden(const PackedLinear& projection, MatrixView<const float> x) {
    const Rows rows = prepare(x, nullptr, {&projection});
    linear({&projection}, rows, x.rows(),
           [&](std::size_t, std::size_t row, std::size_t output, std::size_t n, const float* y) {
             k_.add(y, n, &w_.hidden.view()(row, output));
           });
    barrier();
  }

  void attention(std::size_t layer, const PackedLayer& p) {
    const auto x = w_.hidden.top_rows(rows_);
    const Rows normed = prepare(x, &p.attention_norm, {&p.q, &p.k, &p.v});
    float* const to[] = {w_.q.data(), w_.k.data(), w_.v.data()};
    const std::size_t width[] = {w_.q.cols(), w_.k.cols(), w_.v.cols()};
    linear({&p.q, &p.k, &p.v}, normed, rows_,
           [&](std::size_t which, std::size_t row, std::size_t output, std::size_t n,
               const float* y) { std::copy_n(y, n, to[which] + row * width[which] + output); });
    barrier();
    // A pass over single tokens: whoever computes a head stores its key first. Over several, all
    // keys have to be there before the first query.
    if (!single_) {
      const Share share(rows_ * config_.n_kv_heads, part_, parts_);
      for (std::size_t i = share.begin; i < share.end; ++i) {
        store_key(layer, p, i / config_.n_kv_heads, i % config_.n_kv_heads);
      }
      barrier();
    }
    attend(layer, p);
    barrier();
    add_to_hidden(p.o, w_.attention_out.top_rows(rows_));
  }

  struct Place {  // of a row
    PanelCache* cache;
    std::size_t position;
  };
  Place place_of(std::size_t row) const {
    for (const SequenceTokens& one : batch_) {
      if (row < one.tokens.size()) return {one.cache, one.cache->length() + row};
      row -= one.tokens.size();
    }
    return {};
  }

  void rope(float* head, std::size_t row, const std::vector<float>& norm) const {
    if (!norm.empty()) k_.rms_norm(head, norm.data(), norm.size(), config_.norm_eps, head);
    k_.rope(head, w_.cos.view().row(row).data(), w_.sin.view().row(row).data(), w_.cos.cols());
  }

  void store_key(std::size_t layer, const PackedLayer& p, std::size_t row, std::size_t kv_head) {
    float* key = &w_.k.view()(row, kv_head * config_.head_dim);
    const float* value = &w_.v.view()(row, kv_head * config_.head_dim);
    rope(key, row, p.k_norm);
    const Place place = place_of(row);
    place.cache->put(k_, layer, kv_head, place.position, key, value);
  }

  // Attention by tasks: some neighbouring rows of one sequence, one key and value head, all of the
  // query heads that share it. Whichever thread is free takes the next.
  void attend(std::size_t layer, const PackedLayer& p) {
    const std::size_t group = config_.n_heads / config_.n_kv_heads;
    const std::size_t step = std::max<std::size_t>(1, kTileRows / group);
    std::size_t task = w_.next_task[layer]++;
    std::size_t first_task = 0;
    std::size_t first_row = 0;
    for (const SequenceTokens& one : batch_) {
      const std::size_t tiles = (one.tokens.size() + step - 1) / step;
      const std::size_t tasks = tiles * config_.n_kv_heads;
      for (; task < first_task + tasks; task = w_.next_task[layer]++) {
        // Late rows see more: they go first, so that no thread is left with a long one at the end.
        const std::size_t tile = tiles - 1 - (task - first_task) / config_.n_kv_heads;
        const std::size_t kv_head = (task - first_task) % config_.n_kv_heads;
        const std::size_t row = tile * step;
        const std::size_t n = std::min(step, one.tokens.size() - row);
        if (single_) store_key(layer, p, first_row, kv_head);
        attend_rows(layer, p, *one.cache, one.cache->length() + row, first_row + row, n, kv_head);
      }
      first_task += tasks;
      first_row += one.tokens.size();
    }
  }

  // n rows from `row` on, at positions from `position` on; queries in the order of rows, then
  // heads.
  void attend_rows(std::size_t layer, const PackedLayer& p, PanelCache& cache, std::size_t position,
                   std::size_t row, std::size_t n, std::size_t kv_head) {
    const std::size_t head_dim = config_.head_dim;
    const std::size_t group = config_.n_heads / config_.n_kv_heads;
    const std::size_t queries = n * group;
    const std::size_t width = scratch_.weighted.cols();
    const float scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
    const std::size_t window = config_.windows[layer];
    float* const out = scratch_.weighted.data();
    const RowForm form = row_form(cache.keys(layer, kv_head, 0));
    for (std::size_t i = 0; i < queries; ++i) {
      float* query = &scratch_.queries.f32.view()(i, 0);
      const std::size_t head = kv_head * group + i % group;
      std::copy_n(&w_.q.view()(row + i / group, head * head_dim), head_dim, query);
      rope(query, row + i / group, p.q_norm);
      round_row(query, form, i, width, scratch_.queries);
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

  // Has the processor read what is needed next. Chunks lie too far apart for it to foresee that;
  // once it is in a long one, it needs no help.
  static void fetch(const PanelMatrix& m) {
    constexpr std::size_t kLine = 64, kLong = 8192;
    const std::size_t bytes = m.panel_count() * m.stride;
    if (bytes > kLong) return;
    for (std::size_t at = 0; at < bytes; at += kLine) __builtin_prefetch(m.panels + at);
  }

  // scores[i][j] = queries[i] . key j, for the chunk's first `used` positions and some after them
  void score(const PanelMatrix& keys, std::size_t queries, std::size_t used) {
    const Rows x{&scratch_.queries, scratch_.queries.f32.view()};
    for (std::size_t panel = 0; panel * kPanelOutputs < used; ++panel) {
      for (std::size_t i = 0; i < queries; i += max_rows(keys)) {
        const std::size_t n = std::min(max_rows(keys), queries - i);
        tile(keys, panel, x, i, n, &scratch_.scores.view()(i, panel * kPanelOutputs), kChunk);
      }
    }
  }

  // Turns the scores of query i into probabilities, as far as they are known; [first, last) it
  // sees.
  void softmax(std::size_t i, std::size_t begin, std::size_t first, std::size_t last, float scale,
               float* out, std::size_t width) {
    float* scores = &scratch_.scores.view()(i, 0);
    if (first >= begin + kChunk || last <= begin) {
      std::fill_n(scores, kChunk, 0.0f);
      return;
    }
    const std::size_t from = first > begin ? first - begin : 0;
    const std::size_t to = std::min(last - begin, kChunk);
    std::fill(scores, scores + from, kMasked);
    std::fill(scores + to, scores + kChunk, kMasked);
    const float factor =
        k_.softmax_block(scores, kChunk, scale, &scratch_.largest[i], &scratch_.total[i]);
    k_.scale(factor, width, out);
  }

  // out[i] += the sum of scores[i][j] * value j
  void weigh(const PanelMatrix& values, std::size_t queries, float* out, std::size_t width) {
    const Rows x{nullptr, scratch_.scores.view()};
    float* const product = scratch_.tile.data();
    for (std::size_t panel = 0; panel < values.panel_count(); ++panel) {
      for (std::size_t i = 0; i < queries; i += max_rows(values)) {
        const std::size_t n = std::min(max_rows(values), queries - i);
        tile(values, panel, x, i, n, product);
        for (std::size_t r = 0; r < n; ++r) {
          k_.add(product + r * kPanelOutputs, kPanelOutputs,
                 out + (i + r) * width + panel * kPanelOutputs);
        }
      }
    }
  }

  void mlp(const PackedLayer& p) {
    const auto x = w_.hidden.top_rows(rows_);
    const Rows normed = prepare(x, &p.mlp_norm, {&p.gate, &p.up});
    gate_and_up(p, normed);
    barrier();
    add_to_hidden(p.down, w_.gated.top_rows(rows_));
  }

  // silu(gate) * up, panel by panel: the two never leave the cache.
  void gate_and_up(const PackedLayer& p, const Rows& x) {
    const std::size_t step = std::min(max_rows(p.gate.weight), max_rows(p.up.weight));
    float* const gate = scratch_.tile.data();
    float* const up = gate + kTileRows * kPanelOutputs;
    const std::size_t panels = p.gate.weight.panel_count();
    share_tiles(panels, rows_, [&](std::size_t panel, std::size_t begin, std::size_t end) {
      const std::size_t output = panel * kPanelOutputs;
      const std::size_t n_outputs = std::min(kPanelOutputs, p.gate.weight.outputs - output);
      for (std::size_t r = begin; r < end; r += step) {
        const std::size_t n = std::min(step, end - r);
        tile(p.gate.weight, panel, x, r, n, gate);
        tile(p.up.weight, panel, x, r, n, up);
        for (std::size_t i = 0; i < n; ++i) {
          float* g = gate + i * kPanelOutputs;
          float* u = up + i * kPanelOutputs;
          if (!p.gate.bias.empty()) {
            k_.add(p.gate.bias.data() + output, n_outputs, g);
            k_.add(p.up.bias.data() + output, n_outputs, u);
          }
          k_.swiglu(g, u, n_outputs, &w_.gated.view()(r + i, output));
        }
      }
    });
  }

  void head() {
    if (logits_.rows() == 0) return;
    std::size_t row = 0;   // of all
    std::size_t done = 0;  // rows of logits
    for (const SequenceTokens& one : batch_) {
      row += one.tokens.size();
      if (one.n_logits == 0) continue;
      const auto x = w_.hidden.view().row_range(row - one.n_logits, one.n_logits);
      if (done != 0) barrier();  // all have read the rows that were prepared before
      const Rows normed = prepare(x, &model_.final_norm, {&model_.lm_head});
      linear({&model_.lm_head}, normed, x.rows(),
             [&](std::size_t, std::size_t r, std::size_t output, std::size_t n, const float* y) {
               std::copy_n(y, n, &logits_(done + r, output));
             });
      done += one.n_logits;
    }
  }

  const Config& config_;
  const PackedModel& model_;
  std::span<const SequenceTokens> batch_;
  FastWorkspace& w_;
  MatrixView<float> logits_;
  std::size_t part_, parts_;
  FastWorkspace::Scratch& scratch_;
  const Kernels& k_;
  std::size_t rows_ = 0;
  bool single_ = false;
};

void check(const Config& config, std::span<const SequenceTokens> batch, const FastWorkspace& w,
           MatrixView<float> logits) {
  std::size_t rows = 0, scored = 0;
  for (const auto& [cache, tokens, n_logits] : batch) {
    if (tokens.empty()) throw Error("forward: expected 1 to {} tokens, found 0", w.max_rows);
    if (tokens.size() > cache->capacity() - cache->length()) {
      throw Error("forward: expected at most {} more tokens in the context, found {}",
                  cache->capacity() - cache->length(), tokens.size());
    }
    for (const TokenId token : tokens) {
      if (token < 0 || static_cast<std::size_t>(token) >= config.vocab_size) {
        throw Error("forward: token id: expected 0 to {}, found {}", config.vocab_size - 1, token);
      }
    }
    rows += tokens.size();
    scored += std::min(n_logits, tokens.size());
  }
  if (rows == 0 || rows > w.max_rows) {
    throw Error("forward: expected 1 to {} tokens, found {}", w.max_rows, rows);
  }
  check_shape("forward", "logits", scored, config.vocab_size, logits);
}

}  // namespace

void fast_forward(const Config& config, const PackedModel& model,
                  std::span<const SequenceTokens> batch, FastWorkspace& w,
                  MatrixView<float> logits) {
  check(config, batch, w, logits);
  for (auto& next : w.next_task) next = 0;
  std::size_t rows = 0;
  for (const SequenceTokens& one : batch) rows += one.tokens.size();
  const std::size_t threads = w.threads.size();
  const std::size_t work = rows * model.memory.size();
  const bool crowded = work < kShortPass && w.alone > 0;
  if (threads == 1 || work < kWorthSharing * threads || crowded) {
    if (crowded) --w.alone;
    Pass(config, model, batch, w, logits, 0, 1).run();
  } else {
    const std::uint32_t sleeps = w.threads.sleeps();
    w.threads.run(
        [&](std::size_t part) { Pass(config, model, batch, w, logits, part, threads).run(); });
    if (work < kShortPass && w.threads.sleeps() != sleeps) w.alone = kAlone;
  }
  for (const SequenceTokens& one : batch) one.cache->advance(one.tokens.size());
}

}  // namespace stagecraft
