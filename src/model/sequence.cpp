#include "model/sequence.h"

#include <algorithm>

#include "base/error.h"
#include "model/batch.h"
#include "model/forward.h"

namespace stagecraft {
namespace {

// A prompt goes through the model in pieces of this many tokens: enough that each weight fetched
// from memory serves many rows, few enough that the workspace stays small.
constexpr std::size_t kTextbookRows = 64;

class TextbookSequence final : public Sequence {
 public:
  TextbookSequence(const Model& model, std::size_t context, std::size_t n_threads)
      : model_(model),
        cache_(model.config, context),
        workspace_(model.config, std::min(kTextbookRows, context), context, n_threads) {}

  void forward(std::span<const TokenId> tokens, MatrixView<float> logits) override {
    stagecraft::forward(model_, tokens, cache_, workspace_, logits);
  }
  void truncate(std::size_t length) override { cache_.truncate(length); }
  std::size_t capacity() const override { return cache_.capacity(); }
  std::size_t max_rows() const override { return workspace_.max_rows; }
  std::size_t n_threads() const override { return workspace_.threads.size(); }
  void set_probe(Workspace::Probe probe) override { workspace_.probe_sink = std::move(probe); }

 private:
  const Model& model_;
  KvCache cache_;
  Workspace workspace_;
};

class FastSequence final : public Sequence {
 public:
  FastSequence(const Model& model, std::size_t context, std::size_t n_threads)
      : batch_(model, 1, context, std::min(kFastRows, context), n_threads) {}

  void forward(std::span<const TokenId> tokens, MatrixView<float> logits) override {
    const Batch::Part part{0, tokens, logits.rows()};
    batch_.forward({&part, 1}, logits);
  }
  void truncate(std::size_t length) override { batch_.truncate(0, length); }
  std::size_t capacity() const override { return batch_.context(); }
  std::size_t max_rows() const override { return batch_.max_rows(); }
  std::size_t n_threads() const override { return batch_.n_threads(); }
  void set_probe(Workspace::Probe) override {
    throw Error("probe: expected a model opened for the textbook's layers, found the fast ones");
  }

 private:
  Batch batch_;
};

double count(std::size_t n) { return static_cast<double>(n); }  // products of these stay finite

SequenceBytes textbook_bytes(const Config& config, std::size_t context) {
  const double rows = count(std::min(kTextbookRows, context));
  const double cached = 2.0 * count(config.n_layers) * count(context) * count(config.kv_dim());
  const double probabilities = count(config.n_heads) * rows * count(context);
  const double row = 3.0 * count(config.dim) + 2.0 * count(config.q_dim()) +
                     2.0 * count(config.kv_dim()) + 2.0 * count(config.ffn_dim);
  return {sizeof(float) * cached, sizeof(float) * (probabilities + rows * row)};
}

}  // namespace

std::unique_ptr<Sequence> make_sequence(const Model& model, std::size_t context,
                                        std::size_t n_threads) {
  if (model.packed != nullptr) return std::make_unique<FastSequence>(model, context, n_threads);
  return std::make_unique<TextbookSequence>(model, context, n_threads);
}

SequenceBytes sequence_bytes(const Config& config, Layers layers, KvType kv_type,
                             std::size_t context) {
  if (layers == Layers::Textbook) return textbook_bytes(config, context);
  return {cache_bytes(config, kv_type, context),
          fast_workspace_bytes(config, std::min(kFastRows, context))};
}

}  // namespace stagecraft
