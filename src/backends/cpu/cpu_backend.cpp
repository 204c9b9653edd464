#include "backends/cpu/cpu_backend.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "backends/cpu/cpu_pass.h"
#include "base/error.h"
#include "base/processors.h"

namespace stagecraft {
namespace {

// A prompt goes through the model in pieces of this many tokens: enough that each weight fetched
// from memory serves many rows, few enough that the workspace stays small.
constexpr std::size_t kRows = 512;

WeightLayout cache_layout(KvType type) {
  constexpr WeightLayout kLayouts[] = {WeightLayout::F32, WeightLayout::F16, WeightLayout::Q8};
  return kLayouts[static_cast<std::size_t>(type)];
}

class CpuSequence final : public Sequence {
 public:
  // live: counts the sequences that there are.
  CpuSequence(const Plan& plan, std::size_t context, KvType type, std::size_t& live)
      : cache_(plan.caches, context, cache_layout(type)), state_(cpu_state(plan)), live_(live) {
    ++live_;
  }
  ~CpuSequence() override { --live_; }
  CpuSequence(const CpuSequence&) = delete;
  CpuSequence& operator=(const CpuSequence&) = delete;

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
  PackedKvCache& cache() { return cache_; }
  SequenceState& state() { return state_; }

 private:
  PackedKvCache cache_;
  SequenceState state_;
  std::size_t& live_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Plan& plan, const Checkpoint& checkpoint, const EngineOptions& options,
             const Kernels& table)
      : plan_(plan),
        fused_(fuse(plan)),
        kv_type_(options.kv_type),
        table_(table),
        n_threads_(useful(options.n_threads)) {
    ThreadPool threads(n_threads_);
    weights_ = pack_weights(plan, fused_, checkpoint, threads);
  }

  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    auto sequence = std::make_unique<CpuSequence>(plan_, context, kv_type_, live_);
    // Each sequence may have a token in one pass.
    const std::size_t rows = max_rows != 0 ? max_rows : pass_rows(plan_, kRows, context);
    make_workspace(std::max({rows, live_, max_rows_}));
    return sequence;
  }

  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    batch_.clear();
    for (const Input& input : inputs) {
      auto& sequence = static_cast<CpuSequence&>(*input.sequence);
      batch_.push_back({&sequence.cache(), input.tokens, input.n_logits, &sequence.state()});
    }
    cpu_pass({plan_, fused_, weights_}, batch_, *workspace_, logits);
  }

  std::size_t max_rows() const override { return max_rows_; }
  std::size_t n_threads() const override { return n_threads_; }
  void use_threads(std::size_t n) override {
    n_threads_ = useful(n);
    workspace_.reset();
    if (max_rows_ != 0) make_workspace(max_rows_);
  }
  void set_probe(Probe) override {
    throw Error("probe: expected the textbook backend, found the cpu backend, which fuses steps");
  }

 private:
  // More threads than cores would wait for each other, and nothing would be faster.
  static std::size_t useful(std::size_t n) { return std::min(n, usable_cores()); }

  void make_workspace(std::size_t rows) {
    batch_.reserve(live_);
    if (workspace_ && rows == max_rows_) return;
    workspace_.reset();  // first: two of them would be in memory at once
    workspace_.emplace(plan_, fused_, table_, rows, n_threads_);
    max_rows_ = rows;
  }

  const Plan& plan_;
  const FusedPlan fused_;
  const KvType kv_type_;
  const Kernels& table_;
  PackedWeights weights_;
  std::size_t n_threads_;
  std::size_t live_ = 0;      // sequences
  std::size_t max_rows_ = 0;  // of the workspace
  std::optional<CpuWorkspace> workspace_;
  std::vector<SequenceTokens> batch_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(const Plan& plan, const Checkpoint& checkpoint,
                                          const EngineOptions& options, const Kernels& table) {
  return std::make_unique<CpuBackend>(plan, checkpoint, options, table);
}

SequenceBytes cpu_bytes(const Plan& plan, KvType type, std::size_t context) {
  return {packed_kv_cache_bytes(plan.caches, context, cache_layout(type)) + cpu_state_bytes(plan),
          cpu_workspace_bytes(plan, fuse(plan), pass_rows(plan, kRows, context))};
}

}  // namespace stagecraft
