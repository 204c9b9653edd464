#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cpu/cpu_pass.h"
#include "backends/large_model.h"
#include "base/error.h"
#include "base/processors.h"

namespace stagecraft {
namespace {

// A long prompt is computed in passes of this many tokens: enough that each weight that is read
// from memory serves many rows, few enough that the workspace stays small.
constexpr std::size_t kRows = 512;

// Adds n to a count as long as it exists.
class Counted {
 public:
  Counted(std::size_t& count, std::size_t n) : count_(count), n_(n) { count_ += n_; }
  ~Counted() { count_ -= n_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  std::size_t& count_;
  const std::size_t n_;
};

class CpuSequence final : public Sequence {
 public:
  // counted: how many sequences may take part in a pass; shared by all that were made together.
  CpuSequence(PackedKvCache cache, SequenceState state, std::shared_ptr<const Counted> counted)
      : cache_(std::move(cache)), state_(std::move(state)), counted_(std::move(counted)) {}

  std::size_t length() const override { return cache_.length(); }
  std::size_t capacity() const override { return cache_.capacity(); }
  std::size_t truncate(std::size_t length) override {
    cache_.truncate(state_.truncate(cache_.length(), length));
    return cache_.length();
  }
  bool copy(const Sequence& sequence, std::size_t length) override {
    const auto& other = static_cast<const CpuSequence&>(sequence);
    if (!other.state_.knows(other.length(), length)) return false;
    if (!cache_.copy(other.cache_, length)) return false;
    state_.copy(other.state_, length);
    return true;
  }
  bool reserve(std::size_t length) override { return cache_.reserve(length); }
  PackedKvCache& cache() { return cache_; }
  SequenceState& state() { return state_; }

 private:
  PackedKvCache cache_;
  SequenceState state_;
  std::shared_ptr<const Counted> counted_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Plan& plan, const Checkpoint& checkpoint, KvType kv_type, std::size_t n_threads)
      : plan_(plan),
        fused_(fuse(plan)),
        cache_layout_(kv_layout(kv_type)),
        n_threads_(useful(n_threads)) {
    ThreadPool threads(n_threads_);
    weights_ = pack_weights(plan, fused_, checkpoint, threads);
  }

  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    return std::move(make_sequences(1, 0, context, max_rows).front());
  }

  // If the plan has states, n_more is ignored: states cannot share memory.
  std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n, std::size_t n_more,
                                                        std::size_t context,
                                                        std::size_t max_rows) override {
    const auto pages = make_kv_pages(plan_.caches, context, cache_layout_, n);
    const auto counted = std::make_shared<const Counted>(live_, n);
    std::vector<std::unique_ptr<Sequence>> sequences(n + (plan_.states.empty() ? n_more : 0));
    for (auto& sequence : sequences) {
      sequence = std::make_unique<CpuSequence>(
          PackedKvCache(plan_.caches, context, cache_layout_, pages), cpu_state(plan_), counted);
    }
    // Each sequence that may take part in a pass needs a row.
    const std::size_t rows = max_rows != 0 ? max_rows : pass_rows(plan_, kRows, context);
    make_workspace(std::max({rows, live_, max_rows_}), n_threads_);
    return sequences;
  }

  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    batch_.clear();
    for (const Input& input : inputs) {
      auto& sequence = static_cast<CpuSequence&>(*input.sequence);
      batch_.push_back(
          {&sequence.cache(), input.tokens, input.n_logits, &sequence.state(), input.rows});
    }
    if (!workspace_) throw Error("forward: not enough memory for the buffers of a pass");
    cpu_pass({plan_, fused_, weights_}, batch_, *workspace_, logits);
  }

  std::size_t max_rows() const override { return max_rows_; }
  std::size_t n_threads() const override { return n_threads_; }
  void use_threads(std::size_t n) override {
    if (max_rows_ != 0) make_workspace(max_rows_, useful(n));
    n_threads_ = useful(n);
  }

 private:
  // More threads than cores would only wait for each other.
  static std::size_t useful(std::size_t n) { return std::min(n, usable_cores()); }

  void make_workspace(std::size_t rows, std::size_t n_threads) {
    batch_.reserve(live_);
    if (workspace_ && rows == max_rows_ && n_threads == n_threads_) return;
    workspace_.reset();  // first, so that memory never holds two of them
    try {
      workspace_.emplace(plan_, fused_, kernels(), rows, n_threads);
    } catch (...) {  // the sequences that exist go on with one as before
      if (max_rows_ != 0) workspace_.emplace(plan_, fused_, kernels(), max_rows_, n_threads_);
      throw;
    }
    max_rows_ = rows;
  }

  const Plan& plan_;
  const FusedPlan fused_;
  const WeightLayout cache_layout_;
  PackedWeights weights_;
  std::size_t n_threads_;
  std::size_t live_ = 0;      // sequences that may take part in a pass
  std::size_t max_rows_ = 0;  // of the workspace
  std::optional<CpuWorkspace> workspace_;
  std::vector<SequenceTokens> batch_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Plan& plan, const Checkpoint& checkpoint,
                                          KvType kv_type, std::size_t n_threads) {
  return std::make_unique<CpuBackend>(plan, checkpoint, kv_type, n_threads);
}

KvType default_kv_type(const Checkpoint& checkpoint) {
  const ActivationType type = kernels().matmul(WeightLayout::RoundedBF16).activation_type;
  const bool rounds = type == ActivationType::BF16;
  return rounds && is_large(checkpoint) ? KvType::BF16 : KvType::F16;
}

WeightLayout kv_layout(KvType type) {
  constexpr WeightLayout kLayoutOf[] = {WeightLayout::F32, WeightLayout::F16,
                                        WeightLayout::RoundedBF16, WeightLayout::Q8_0};
  return kLayoutOf[static_cast<std::size_t>(type)];
}

SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context) {
  return {packed_kv_cache_bytes(plan.caches, context, kv_layout(type)) + cpu_state_bytes(plan),
          cpu_workspace_bytes(plan, fuse(plan), pass_rows(plan, kRows, context))};
}

}  // namespace stagecraft
