#include "generation/benchmark.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/stopwatch.h"
#include "model/batch.h"
#include "model/sequence.h"

namespace stagecraft {
namespace {

// Ids spread over the vocabulary, the same in every run.
std::vector<TokenId> some_ids(std::size_t n, std::size_t vocab_size) {
  std::vector<TokenId> ids(n);
  std::uint64_t state = 1;
  for (TokenId& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<TokenId>((state >> 33) % vocab_size);
  }
  return ids;
}

std::uint64_t hash_of(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(values)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

// One way to compute: `sequences` at once, whichever layers the model was opened for.
class Runner {
 public:
  Runner(const Model& model, const BenchmarkSizes& sizes, std::size_t n_threads)
      : logits_(sizes.batch, model.config.vocab_size) {
    const std::size_t context = sizes.depth + std::max(sizes.prompt, sizes.generate) + 1;
    if (model.layers() == Layers::Textbook) {
      if (sizes.batch != 1) {
        throw Error(
            "batch: expected 1, as the textbook's layers compute one sequence at a time, "
            "found {}",
            sizes.batch);
      }
      sequence_ = make_sequence(model, context, n_threads);
    } else {
      batch_ = std::make_unique<Batch>(model, sizes.batch, context,
                                       std::max(kFastRows, sizes.batch), n_threads);
    }
  }

  void forget(std::size_t length) {
    if (sequence_ != nullptr) return sequence_->truncate(length);
    for (std::size_t i = 0; i < batch_->size(); ++i) batch_->truncate(i, length);
  }

  // The same text for all, one after the other.
  void read(std::span<const TokenId> ids) {
    const std::size_t most = sequence_ != nullptr ? sequence_->max_rows() : batch_->max_rows();
    for (std::size_t i = 0; i < logits_.rows(); ++i) {
      for (std::size_t at = 0; at < ids.size(); at += most) {
        const auto piece = ids.subspan(at, std::min(most, ids.size() - at));
        const bool last = at + piece.size() == ids.size();
        step(piece, i, logits_.view().row_range(i, last ? 1 : 0));
      }
    }
  }

  // One more token for each.
  void make(TokenId id) {
    if (sequence_ != nullptr) return sequence_->forward({&id, 1}, logits_.view());
    parts_.clear();
    for (std::size_t i = 0; i < logits_.rows(); ++i) parts_.push_back({i, {&id, 1}, 1});
    batch_->forward(parts_, logits_.view());
  }

  std::uint64_t hash() const { return hash_of({logits_.data(), logits_.cols()}); }

 private:
  void step(std::span<const TokenId> piece, std::size_t i, MatrixView<float> logits) {
    if (sequence_ != nullptr) return sequence_->forward(piece, logits);
    const Batch::Part part{i, piece, logits.rows()};
    batch_->forward({&part, 1}, logits);
  }

  std::unique_ptr<Sequence> sequence_;
  std::unique_ptr<Batch> batch_;
  Matrix<float> logits_;
  std::vector<Batch::Part> parts_;
};

}  // namespace

BenchmarkResult benchmark(const Model& model, const BenchmarkSizes& sizes, std::size_t n_threads,
                          const std::function<bool()>& go_on) {
  Runner runner(model, sizes, n_threads);
  const auto before = some_ids(sizes.depth, model.config.vocab_size);
  const auto ids = some_ids(std::max(sizes.prompt, sizes.generate), model.config.vocab_size);
  if (!before.empty()) runner.read(before);
  BenchmarkResult result;
  for (std::size_t i = 0; i <= sizes.repetitions; ++i) {
    if (go_on && !go_on()) break;
    if (sizes.prompt != 0) {
      runner.forget(sizes.depth);
      const Stopwatch watch;
      runner.read(std::span(ids).first(sizes.prompt));
      if (i != 0) result.prompt_seconds.push_back(watch.seconds());
    }
    if (sizes.generate != 0) {
      runner.forget(sizes.depth);
      const Stopwatch watch;
      for (std::size_t t = 0; t < sizes.generate; ++t) runner.make(ids[t]);
      if (i != 0) result.generate_seconds.push_back(watch.seconds());
    }
  }
  result.logits_hash = runner.hash();
  return result;
}

}  // namespace stagecraft
