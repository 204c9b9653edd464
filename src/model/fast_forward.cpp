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
      if (rows_ == 0) return;
      mlp(model_.layers[i]);
    }
    head();
  }

 private:
  void embed() {
    std::size_t row = 0;
    const Range share = part_.share(rows_);
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
    part_.multiply(rows, {0, rows_}, {{&projection, w_.hidden.view(), true}});
    part_.barrier();
  }

  // Of the last layer, the rows that are not to be scored have to leave only keys and values.
  void attention(std::size_t layer, const PackedLayer& p) {
    const Rows normed =
        part_.prepare(w_.hidden.top_rows(rows_), &p.attention_norm, {&p.q, &p.k, &p.v});
    const Product q{&p.q, w_.q.view()}, k{&p.k, w_.k.view()}, v{&p.v, w_.v.view()};
    const bool only_scored = layer + 1 == config_.n_layers && logits_.rows() < rows_;
    if (only_scored) {
      part_.multiply(normed, {first_scored_row(), rows_}, {q});
      part_.multiply(normed, {0, rows_}, {k, v});
    } else {
      part_.multiply(normed, {0, rows_}, {q, k, v});
    }
    part_.barrier();
    attention_.run(layer, p, only_scored);
    if (only_scored) keep_scored_rows();
    if (rows_ != 0) add_to_hidden(p.o, w_.attention_out.top_rows(rows_));
  }

  std::size_t first_scored_row() const {
    std::size_t row = 0;
    for (const SequenceTokens& one : batch_) {
      if (one.n_logits != 0) return row + one.unscored();
      row += one.tokens.size();
    }
    return row;
  }

  // Moves the rows that are to be scored to the top.
  void keep_scored_rows() {
    if (part_.is_first()) {
      std::size_t to = 0;
      std::size_t row = 0;
      for (const SequenceTokens& one : batch_) {
        row += one.unscored();
        for (const std::size_t end = row + one.n_logits; row < end; ++row, ++to) {
          if (row == to) continue;
          for (Matrix<float>* rows : {&w_.hidden, &w_.attention_out}) {
            std::ranges::copy(rows->view().row(row), rows->view().row(to).data());
          }
        }
      }
    }
    part_.barrier();
    rows_ = logits_.rows();
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
    part_.share_tiles(panels, {0, rows_}, [&](std::size_t panel, Range rows) {
      const std::size_t output = panel * kPanelOutputs;
      const std::size_t n_outputs = std::min(kPanelOutputs, p.gate.weight.outputs - output);
      for (std::size_t r = rows.begin; r < rows.end; r += step) {
        const std::size_t n = std::min(step, rows.end - r);
        part_.tile(p.gate.weight, panel, x, r, n, {gate}, rows);
        part_.tile(p.up.weight, panel, x, r, n, {up}, rows);
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
    const Rows normed =
        part_.prepare(w_.hidden.top_rows(rows_), &model_.final_norm, {&model_.lm_head});
    part_.multiply(normed, {0, rows_}, {{&model_.lm_head, logits_}});
  }

  const Config& config_;
  const PackedModel& model_;
  std::span<const SequenceTokens> batch_;
  FastWorkspace& w_;
  MatrixView<float> logits_;
  const Kernels& k_;
  FastPart part_;
  FastAttention attention_;
  std::size_t rows_;  // that are on their way: all tokens of the pass, then those to be scored
};

void check(const Config& config, std::span<const SequenceTokens> batch, const FastWorkspace& w,
           MatrixView<float> logits) {
  std::size_t scored = 0;
  for (const auto& [cache, tokens, n_logits] : batch) {
    if (tokens.empty()) throw Error("forward: expected 1 to {} tokens, found 0", w.max_rows);
    if (n_logits > tokens.size()) {
      throw Error("forward: expected at most {} tokens to score, found {}", tokens.size(),
                  n_logits);
    }
    if (tokens.size() > cache->capacity() - cache->length()) {
      throw Error("forward: expected at most {} more tokens in the context, found {}",
                  cache->capacity() - cache->length(), tokens.size());
    }
    for (const TokenId token : tokens) {
      if (token < 0 || static_cast<std::size_t>(token) >= config.vocab_size) {
        throw Error("forward: token id: expected 0 to {}, found {}", config.vocab_size - 1, token);
      }
    }
    scored += n_logits;
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
