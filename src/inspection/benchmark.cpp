#include "inspection/benchmark.h"

#include <algorithm>
#include <new>

#include "base/stopwatch.h"
#include "generation/broken_model.h"
#include "generation/feed_tokens.h"
#include "generation/text_memory.h"

namespace stagecraft {
namespace {

// Ids spread over the vocabulary, the same in every run. If the plan has a PromptRule, the first
// token ends the prompt: then the prompt is empty, and the text may be cut anywhere.
std::vector<TokenId> some_ids(std::size_t n, const Plan& plan) {
  const std::size_t vocab_size = plan.vocab_size;
  std::vector<TokenId> ids(n);
  std::uint64_t state = 1;
  for (TokenId& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    id = static_cast<TokenId>((state >> 33) % vocab_size);
  }
  if (plan.prompt && !ids.empty()) ids.front() = plan.prompt->end;
  return ids;
}

std::uint64_t hash_of(std::span<const float> values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(values)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

std::size_t context_of(const BenchmarkSizes& sizes) {
  return sizes.depth + std::max(sizes.prompt, sizes.generate);
}

struct Stopped {};

// Sequences that the engine computes together. Calls `go_on` before each pass; throws Stopped if it
// returns false.
class Runner {
 public:
  Runner(Engine& engine, const BenchmarkSizes& sizes, const std::function<bool()>& go_on)
      : engine_(engine), go_on_(go_on), logits_(sizes.batch, engine.plan().vocab_size) {
    for (std::size_t i = 0; i < sizes.batch; ++i) {
      sequences_.push_back(engine.make_sequence(context_of(sizes)));
    }
    inputs_.reserve(sizes.batch);
  }

  // Cuts all texts to `ids`, with which they begin.
  void go_back(std::span<const TokenId> ids) {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      const std::size_t kept = sequences_[i]->truncate(ids.size());
      if (kept < ids.size()) read(i, ids.subspan(kept));
    }
  }

  // Feeds the same text to all sequences, one after the other.
  void read(std::span<const TokenId> ids) {
    for (std::size_t i = 0; i < sequences_.size(); ++i) read(i, ids);
  }
  void read(std::size_t i, std::span<const TokenId> ids) {
    ask();
    if (!feed_tokens(engine_, *sequences_[i], ids, logits_.view().row_range(i, 1), go_on_)) {
      throw Stopped{};
    }
  }

  // Feeds one more token to each sequence, all in one pass.
  void make(TokenId id) {
    inputs_.clear();
    for (const auto& sequence : sequences_) inputs_.push_back({sequence.get(), {&id, 1}, 1});
    ask();
    engine_.forward(inputs_, logits_.view());
  }

  // The logits of the first sequence.
  std::span<const float> logits() const { return {logits_.data(), logits_.cols()}; }

 private:
  void ask() const {
    if (go_on_ && !go_on_()) throw Stopped{};
  }

  Engine& engine_;
  const std::function<bool()>& go_on_;
  std::vector<std::unique_ptr<Sequence>> sequences_;
  Matrix<float> logits_;
  std::vector<Input> inputs_;
};

}  // namespace

BenchmarkResult benchmark(Engine& engine, const BenchmarkSizes& sizes,
                          const std::function<bool()>& go_on) try {
  check_memory(engine, context_of(sizes), sizes.batch);
  Runner runner(engine, sizes, go_on);
  const auto before = some_ids(sizes.depth, engine.plan());
  const auto ids = some_ids(std::max(sizes.prompt, sizes.generate), engine.plan());
  if (!before.empty()) runner.read(before);
  BenchmarkResult result;
  for (std::size_t i = 0; i <= sizes.repetitions; ++i) {
    if (sizes.prompt != 0) {
      runner.go_back(before);
      const Stopwatch watch;
      runner.read(std::span(ids).first(sizes.prompt));
      if (i != 0) result.prompt_seconds.push_back(watch.seconds());
    }
    if (sizes.generate != 0) {
      runner.go_back(before);
      const Stopwatch watch;
      for (std::size_t t = 0; t < sizes.generate; ++t) runner.make(ids[t]);
      if (i != 0) result.generate_seconds.push_back(watch.seconds());
    }
    if (i == 0) check_logits(runner.logits());
  }
  result.logits_hash = hash_of(runner.logits());
  return result;
} catch (const Stopped&) {
  return {};
} catch (const std::bad_alloc&) {
  throw no_memory(engine, context_of(sizes), sizes.batch);
}

}  // namespace stagecraft
