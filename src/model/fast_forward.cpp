#include "model/fast_forward.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/fast_attention.h"
#include "model/fast_part.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

// Rows times bytes of weights for each thread, below which the threads would wait for each other
// longer than they work.
constexpr std::size_t kWorthSharing = std::size_t{1} << 20;
// A pass over less than this is done in less time than a processor stays with other work. Once one
// of the threads has had to wait for such a processor, so many passes are left to the first alone.
constexpr std::size_t kShortPass = std::size_t{8} << 20;
constexpr std::size_t kAlone = 1000;

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
        k_(w.kernels),
        part_(config, w, part, parts),
        attention_(config, batch, w, part_),
        rows_(count_tokens(batch)) {}

  void run() {
    embed();
    part_.barrier();
    for (std::size_t i = 0; i < config_.n_layers; ++i) {
      attention(i, model_.layers[i]);
      mlp(model_.layers[i]);
    }
    head();
  }

 private:
  void embed() {
    std::size_t row = 0;
    const Share share = part_.share(rows_);
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

  void add_to_hidden(const PackedLinear& projection, MatrixView<const float> x) {
    const Rows rows = part_.prepare(x, nullptr, {&projection});
    part_.linear({&projection}, rows, x.rows(),
                 [&](std::size_t, std::size_t row, std::size_t output, std::size_t n,
                     const float* y) { k_.add(y, n, &w_.hidden.view()(row, output)); });
    part_.barrier();
  }

  void attention(std::size_t layer, const PackedLayer& p) {
    const auto x = w_.hidden.top_rows(rows_);
    const Rows normed = part_.prepare(x, &p.attention_norm, {&p.q, &p.k, &p.v});
    float* const to[] = {w_.q.data(), w_.k.data(), w_.v.data()};
    const std::size_t width[] = {w_.q.cols(), w_.k.cols(), w_.v.cols()};
    part_.linear(
        {&p.q, &p.k, &p.v}, normed, rows_,
        [&](std::size_t which, std::size_t row, std::size_t output, std::size_t n, const float* y) {
          std::copy_n(y, n, to[which] + row * width[which] + output);
        });
    part_.barrier();
    attention_.run(layer, p);
    add_to_hidden(p.o, w_.attention_out.top_rows(rows_));
  }

  void mlp(const PackedLayer& p) {
    const auto x = w_.hidden.top_rows(rows_);
    const Rows normed = part_.prepare(x, &p.mlp_norm, {&p.gate, &p.up});
    gate_and_up(p, normed);
    part_.barrier();
    add_to_hidden(p.down, w_.gated.top_rows(rows_));
  }

  // silu(gate) * up, panel by panel: the two never leave the cache.
  void gate_and_up(const PackedLayer& p, const Rows& x) {
    const std::size_t step = std::min(part_.max_rows(p.gate.weight), part_.max_rows(p.up.weight));
    float* const gate = part_.scratch().tile.data();
    float* const up = gate + kTileRows * kPanelOutputs;
    const std::size_t panels = p.gate.weight.panel_count();
    part_.share_tiles(panels, rows_, [&](std::size_t panel, std::size_t begin, std::size_t end) {
      const std::size_t output = panel * kPanelOutputs;
      const std::size_t n_outputs = std::min(kPanelOutputs, p.gate.weight.outputs - output);
      for (std::size_t r = begin; r < end; r += step) {
        const std::size_t n = std::min(step, end - r);
        part_.tile(p.gate.weight, panel, x, r, n, gate);
        part_.tile(p.up.weight, panel, x, r, n, up);
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
      if (done != 0) part_.barrier();  // all have read the rows that were prepared before
      const Rows normed = part_.prepare(x, &model_.final_norm, {&model_.lm_head});
      part_.linear({&model_.lm_head}, normed, x.rows(),
                   [&](std::size_t, std::size_t r, std::size_t output, std::size_t n,
                       const float* y) { std::copy_n(y, n, &logits_(done + r, output)); });
      done += one.n_logits;
    }
  }

  const Config& config_;
  const PackedModel& model_;
  std::span<const SequenceTokens> batch_;
  FastWorkspace& w_;
  MatrixView<float> logits_;
  const Kernels& k_;
  FastPart part_;
  FastAttention attention_;
  std::size_t rows_;
};

void check(const Config& config, std::span<const SequenceTokens> batch, const FastWorkspace& w,
           MatrixView<float> logits) {
  std::size_t scored = 0;
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
    scored += std::min(n_logits, tokens.size());
  }
  const std::size_t rows = count_tokens(batch);
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
  const std::size_t threads = w.threads.size();
  const std::size_t work = count_tokens(batch) * model.memory.size();
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
