#include "backends/textbook/textbook_backend.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "backends/textbook/plan_walker.h"
#include "base/error.h"
#include "base/quoted_names.h"
#include "model/attention_block.h"
#include "model/forward.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "operators/check.h"
#include "operators/rms_norm.h"

namespace stagecraft {
namespace {

// A long prompt is computed in passes of this many tokens.
constexpr std::size_t kRows = 64;

class TextbookSequence final : public Sequence {
 public:
  explicit TextbookSequence(WalkedText text) : text_(std::move(text)) {}

  std::size_t length() const override { return text_.cache.length(); }
  std::size_t capacity() const override { return text_.cache.capacity(); }
  std::size_t truncate(std::size_t to) override {
    if (to < length()) {
      text_.cache.truncate(text_.state.truncate(length(), text_.placement.kept(to)));
    }
    return length();
  }
  WalkedText& text() { return text_; }
  KvCache& cache() { return text_.cache; }

 private:
  WalkedText text_;
};

// What both textbook backends have in common: all sequences use one workspace, in turn. It is
// replaced if a new sequence needs a larger one.
class TextbookBackend : public Backend, public StepResults {
 public:
  TextbookBackend(const Plan& plan, std::size_t n_threads) : n_threads_(n_threads), plan_(plan) {}

  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    const std::size_t rows = max_rows != 0 ? max_rows : pass_rows(plan_, kRows, context);
    auto sequence = std::make_unique<TextbookSequence>(
        WalkedText{new_cache(context), SequenceState(plan_), {}});
    if (rows > max_rows_ || context > max_context_) {
      resize_workspace(std::max(rows, max_rows_), std::max(context, max_context_), n_threads_);
    }
    return sequence;
  }

  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    if (max_rows_ == 0) throw Error("forward: not enough memory for the buffers of a pass");
    // All inputs are checked first, because a state cannot be restored.
    std::size_t n_logits = 0;
    for (const Input& input : inputs) n_logits += input.n_logits;
    check_shape("forward", "logits", n_logits, plan_.vocab_size, logits);
    for_each(inputs, logits, [this](const Input& input, TextbookSequence& sequence, auto rows) {
      check_pass(plan_, input.tokens, sequence.cache(), max_rows_, max_context_, rows);
    });
    for_each(inputs, logits, [this](const Input& input, TextbookSequence& sequence, auto rows) {
      pass(input.tokens, sequence, rows);
    });
  }

  std::size_t max_rows() const override { return max_rows_; }
  std::size_t n_threads() const override { return n_threads_; }
  void use_threads(std::size_t n) override {
    if (max_rows_ != 0) resize_workspace(max_rows_, max_context_, n);
    n_threads_ = n;
  }
  StepResults* step_results() override { return this; }
  void set_probe(Probe probe) override { probe_ = std::move(probe); }

 private:
  void resize_workspace(std::size_t rows, std::size_t context, std::size_t n_threads) {
    const std::size_t rows_before = std::exchange(max_rows_, 0);
    try {
      make_workspace(rows, context, n_threads);
    } catch (...) {  // the sequences that exist go on with one as before
      if (rows_before != 0) {
        make_workspace(rows_before, max_context_, n_threads_);
        max_rows_ = rows_before;
      }
      throw;
    }
    max_rows_ = rows;
    max_context_ = context;
  }

  // each(input, its sequence, its rows of the logits)
  template <class Each>
  static void for_each(std::span<const Input> inputs, MatrixView<float> logits, Each each) {
    std::size_t row = 0;
    for (const Input& input : inputs) {
      each(input, static_cast<TextbookSequence&>(*input.sequence),
           logits.row_range(row, input.n_logits));
      row += input.n_logits;
    }
  }

  virtual KvCache new_cache(std::size_t context) const = 0;
  virtual void make_workspace(std::size_t rows, std::size_t context, std::size_t n_threads) = 0;
  virtual void pass(std::span<const TokenId> tokens, TextbookSequence& sequence,
                    MatrixView<float> logits) = 0;

  std::size_t n_threads_;
  std::size_t max_rows_ = 0;
  std::size_t max_context_ = 0;

 protected:
  // Throws Error unless score() may be called with these.
  void check_score(MatrixView<const float> x, MatrixView<float> logits) const {
    if (max_rows_ == 0) throw Error("score: expected a sequence to be made before, found none");
    if (x.rows() == 0 || x.rows() > max_rows_) {
      throw Error("score: expected 1 to {} rows, found {}", max_rows_, x.rows());
    }
    check_shape("score", "x", x.rows(), plan_.buffer(residual_stream(plan_)).width, x);
    check_shape("score", "logits", x.rows(), plan_.vocab_size, logits);
  }

  const Plan& plan_;
  Probe probe_;
};

// load_parameters() knows only the names of Hugging Face. Its errors get the names that the file
// has.
Parameters load_with_stored_names(const Config& config, const Checkpoint& checkpoint) {
  try {
    return load_parameters(config, checkpoint);
  } catch (const Error& error) {
    throw Error(rename_quoted(error.what(), checkpoint.name(), [&](const std::string& name) {
      return checkpoint.stored_name(name);
    }));
  }
}

// The layers of the course.
class CourseBackend final : public TextbookBackend {
 public:
  CourseBackend(const Plan& plan, const Config& config, const Checkpoint& checkpoint,
                std::size_t n_threads)
      : TextbookBackend(plan, n_threads),
        model_{config, load_with_stored_names(config, checkpoint)} {
    if (!model_.parameters.converted.empty()) checkpoint.release_pages();  // F32 is read when used
  }
  // The same as forward() computes after the last layer.
  void score(MatrixView<const float> x, MatrixView<float> logits) override {
    check_score(x, logits);
    const auto normed = workspace_->normed.top_rows(x.rows());
    rms_norm(x, model_.parameters.final_norm, model_.config.norm_eps, normed);
    linear(model_.parameters.lm_head, normed, logits, workspace_->threads);
  }

 private:
  KvCache new_cache(std::size_t context) const override { return {model_.config, context}; }
  void make_workspace(std::size_t rows, std::size_t context, std::size_t n_threads) override {
    workspace_.reset();
    workspace_.emplace(model_.config, rows, context, n_threads);
  }
  void pass(std::span<const TokenId> tokens, TextbookSequence& sequence,
            MatrixView<float> logits) override {
    if (probe_) show_blocks(tokens, sequence.cache());
    stagecraft::forward(model_, tokens, sequence.cache(), *workspace_, logits);
  }

  // Nothing inside the functions of the course reports results. So before forward() calls them,
  // this function calls them in the same order, and shows what each returns. The cache does not
  // advance: forward() writes the same positions again.
  void show_blocks(std::span<const TokenId> tokens, KvCache& cache) {
    const auto& [config, parameters] = model_;
    Workspace& w = *workspace_;
    const auto x = w.hidden.top_rows(tokens.size());
    const auto probabilities =
        w.probabilities_for(config.n_heads, tokens.size(), cache.length() + tokens.size());
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      std::ranges::copy(parameters.embedding.row(static_cast<std::size_t>(tokens[t])),
                        x.row(t).begin());
    }
    probe_(-1, "embedding", x);
    for (std::size_t i = 0; i < config.n_layers; ++i) {
      const auto layer = static_cast<int>(i);
      attention_block(config, parameters.layers[i].attention, i, x, cache, w);
      probe_(layer, kAttentionProbs, probabilities);
      probe_(layer, "attn_residual", x);
      mlp(config, parameters.layers[i].mlp, x, w);
      probe_(layer, "mlp_residual", x);
    }
  }

  const Model model_;
  std::optional<Workspace> workspace_;
};

class WalkingBackend final : public TextbookBackend {
 public:
  WalkingBackend(const Plan& plan, const Checkpoint& checkpoint, std::size_t n_threads)
      : TextbookBackend(plan, n_threads), weights_(load_weights(plan, checkpoint)) {}
  void score(MatrixView<const float> x, MatrixView<float> logits) override {
    check_score(x, logits);
    walk_head({plan_, weights_}, x, *workspace_, logits);
  }

 private:
  KvCache new_cache(std::size_t context) const override { return make_kv_cache(plan_, context); }
  void make_workspace(std::size_t rows, std::size_t context, std::size_t n_threads) override {
    workspace_.reset();
    workspace_.emplace(plan_, rows, context, n_threads);
  }
  void pass(std::span<const TokenId> tokens, TextbookSequence& sequence,
            MatrixView<float> logits) override {
    walk({plan_, weights_}, tokens, sequence.text(), *workspace_, logits, probe_);
  }

  const PlanWeights weights_;
  std::optional<WalkWorkspace> workspace_;
};

double count(std::size_t n) { return static_cast<double>(n); }  // products of these do not overflow

}  // namespace

std::unique_ptr<Backend> make_textbook_backend(const ModelDescription& description,
                                               const Checkpoint& checkpoint,
                                               std::size_t n_threads) {
  if (!description.config) return make_walking_backend(description.plan, checkpoint, n_threads);
  return std::make_unique<CourseBackend>(description.plan, *description.config, checkpoint,
                                         n_threads);
}

std::unique_ptr<Backend> make_walking_backend(const Plan& plan, const Checkpoint& checkpoint,
                                              std::size_t n_threads) {
  if (row_input(plan) != kNone)
    throw Error("textbook: expected a plan that reads tokens, found one that does not");
  return std::make_unique<WalkingBackend>(plan, checkpoint, n_threads);
}

SequenceBytes textbook_bytes(const Plan& plan, std::size_t context) {
  const double rows = count(pass_rows(plan, kRows, context));
  double cached = 0.0;
  for (const CacheShape& shape : plan.caches) cached += 2.0 * count(shape.width());
  double row = 0.0;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    if (static_cast<BufferId>(i) != plan.logits) row += count(plan.buffers[i].width);
  }
  return {sizeof(float) * cached * count(context) + sequence_state_bytes(plan),
          sizeof(float) * rows * (count(max_heads(plan)) * count(context) + row)};
}

}  // namespace stagecraft
