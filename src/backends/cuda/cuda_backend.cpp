#include "backends/cuda/cuda_backend.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>

#include "backends/cuda/cuda_pass.h"
#include "backends/pass_check.h"
#include "backends/sequence_state.h"
#include "base/error.h"
#include "model/placement.h"

namespace stagecraft {
namespace cuda {

void fail(const char* what, const char* why) {
  throw Error("{}: {}: {}", cuda_backend_name(), what, why);
}

void*& current_stream() {
  thread_local void* stream = nullptr;
  return stream;
}

void check_capability(Capability found) {
  if (std::pair(found.major, found.minor) >= std::pair(kOldestMajor, kOldestMinor)) return;
  throw Error("{}: GPU: expected compute capability {}.{} or higher, found {}.{}",
              cuda_backend_name(), kOldestMajor, kOldestMinor, found.major, found.minor);
}

namespace {

std::atomic<std::size_t> repeated_passes = 0;

// Throws Error if a kernel cannot run a step of the plan. Called before weights are loaded.
void check_plan(const Plan& plan) {
  for (const CacheShape& shape : plan.caches) {
    if (shape.head_dim <= kMaxHeadDim) continue;
    throw Error("{}: attention: expected heads of at most {} numbers, found {}",
                cuda_backend_name(), kMaxHeadDim, shape.head_dim);
  }
  for (const Step& step : plan.steps) {
    const auto* route = std::get_if<RouteStep>(&step.kind);
    if (route == nullptr) continue;
    const auto expect = [](const char* what, std::size_t most, std::size_t found) {
      if (found <= most) return;
      throw Error("{}: route: expected at most {} {}, found {}", cuda_backend_name(), most, what,
                  found);
    };
    expect("experts", kMaxExperts, plan.buffer(route->x).width);
    expect("groups", kMaxGroups, route->groups.n);
  }
}

// The SequenceSlots of all sequences, with a copy in the GPU's memory for the kernels.
class SlotTable {
 public:
  std::size_t take(SequenceSlot slot) {
    std::vector<SequenceSlot> slots = slots_;
    const auto free = std::ranges::find(slots, 0u, &SequenceSlot::capacity);
    const auto index = static_cast<std::size_t>(free - slots.begin());
    if (free == slots.end()) slots.emplace_back();
    slots[index] = slot;
    table_ = DeviceMemory(std::span<const SequenceSlot>(slots));  // throws if memory is short
    slots_ = std::move(slots);
    return index;
  }
  void give_back(std::size_t index) { slots_[index] = {}; }
  const SequenceSlot* table() const { return table_.as<SequenceSlot>(); }

 private:
  std::vector<SequenceSlot> slots_;
  DeviceMemory table_;
};

class CudaSequence final : public Sequence {
 public:
  CudaSequence(const Plan& plan, std::size_t capacity, const PlanTables& tables, SlotTable& slots)
      : plan_(plan),
        capacity_(capacity),
        cache_type_(tables.cache_type),
        memory_(capacity * tables.position_bytes),
        state_bytes_(tables.state_numbers * sizeof(float)),
        states_(state_bytes_),
        slots_(slots) {
    clear_states();
    // Last: if the constructor threw after this, nothing would give the slot back.
    index_ = slots.take({memory_.as<void>(), states_.as<float>(), static_cast<unsigned>(capacity)});
  }
  ~CudaSequence() override { slots_.give_back(index_); }
  CudaSequence(const CudaSequence&) = delete;
  CudaSequence& operator=(const CudaSequence&) = delete;

  std::size_t length() const override { return length_; }
  std::size_t capacity() const override { return capacity_; }
  std::size_t truncate(std::size_t length) override {
    if (length >= length_) return length_;
    length = knows_states(plan_, length_, length) ? placement_.kept(length) : 0;
    clear_states();
    return length_ = length;
  }
  bool copy(const Sequence& from, std::size_t length) override {
    const auto& other = static_cast<const CudaSequence&>(from);
    if (length > other.length_ || length > capacity_) return false;
    if (!knows_states(plan_, other.length_, length)) return false;
    if (other.placement_.kept(length) != length) return false;
    std::size_t before = 0;  // bytes per position in the keys and values that were copied
    for (const CacheShape& shape : plan_.caches) {
      const std::size_t bytes = cached_bytes(cache_type_, shape.n_kv_heads, shape.head_dim);
      for (int keys_and_values = 0; length != 0 && keys_and_values < 2; ++keys_and_values) {
        cuda::copy(memory_.as<std::byte>() + capacity_ * before,
                   other.memory_.as<std::byte>() + other.capacity_ * before, length * bytes);
        before += bytes;
      }
    }
    if (length == 0) {
      clear_states();
    } else if (state_bytes_ != 0) {
      cuda::copy(states_.as<void>(), other.states_.as<void>(), state_bytes_);
    }
    length_ = length;
    placement_ = other.placement_;
    return true;
  }

  int index() const { return static_cast<int>(index_); }
  // The placement of the text if these tokens are appended. Throws Error if the text is empty and
  // cannot begin with them (place_text).
  Placement placement(std::span<const TokenId> tokens) const {
    return length_ == 0 ? place_text(plan_, tokens) : placement_;
  }
  void advance(std::span<const TokenId> tokens) {
    placement_ = placement(tokens);
    length_ += tokens.size();
  }

 private:
  void clear_states() {
    if (state_bytes_ != 0) clear(states_.as<void>(), state_bytes_);
  }

  const Plan& plan_;
  const std::size_t capacity_;
  const CacheType cache_type_;
  DeviceMemory memory_;  // keys and values, see SequenceSlot
  const std::size_t state_bytes_;
  DeviceMemory states_;  // see SequenceSlot
  SlotTable& slots_;
  std::size_t index_;
  std::size_t length_ = 0;
  Placement placement_;  // of the text, if it is not empty
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(const Plan& plan, const Checkpoint& checkpoint, KvType kv_type)
      : plan_(plan), tables_(plan, cache_type(kv_type)), weights_(plan, checkpoint) {}

  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    recorder_.forget();  // records point to the table of slots and to the workspace: both may move
    auto sequence = std::make_unique<CudaSequence>(plan_, context, tables_, slots_);
    const std::size_t rows = max_rows != 0 ? max_rows : pass_rows(plan_, kMostRows, context);
    const auto live = static_cast<std::size_t>(sequence->index()) + 1;  // one row per sequence
    make_workspace(std::max(rows, live));
    return sequence;
  }

  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    forward_greedy(inputs, logits, {});
  }

  // likeliest may be empty: then all logits are written.
  void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                      std::span<TokenId> likeliest) override {
    check(inputs, logits);
    PassRows& rows = rows_;
    rows.clear();
    for (const Input& input : inputs) {
      const auto& sequence = static_cast<const CudaSequence&>(*input.sequence);
      const Placement placement = sequence.placement(input.tokens);
      rows.given.push_back(input.rows);
      for (std::size_t i = 0; i < input.tokens.size(); ++i) {
        const std::size_t index = sequence.length() + i;
        if (i + input.n_logits >= input.tokens.size()) {
          rows.scored.push_back(static_cast<int>(rows.ids.size()));
        }
        rows.ids.push_back(input.tokens[i]);
        rows.positions.push_back(static_cast<int>(index));
        rows.seen.push_back(static_cast<int>(placement.seen(index)));
        rows.text_positions.push_back(static_cast<int>(placement.position(Positions::Text, index)));
        rows.answer_positions.push_back(
            static_cast<int>(placement.position(Positions::Answer, index)));
        rows.sequences.push_back(sequence.index());
      }
    }
    const bool is_repeated = run_pass({plan_, weights_, tables_}, *workspace_, recorder_,
                                      slots_.table(), rows, logits, likeliest);
    if (is_repeated) ++repeated_passes;
    for (const Input& input : inputs) {
      static_cast<CudaSequence&>(*input.sequence).advance(input.tokens);
    }
  }

  std::size_t max_rows() const override { return workspace_ ? workspace_->max_rows() : 0; }
  std::size_t n_threads() const override { return 1; }
  void use_threads(std::size_t) override {}  // of the CPU: this backend always uses one

 private:
  void make_workspace(std::size_t rows) {
    const std::size_t before = max_rows();
    if (rows <= before) return;
    // A grid of blocks has at most 65,535 rows (CUDA C++ Programming Guide, technical
    // specifications). The largest grid has one for each expert that a row may choose.
    std::size_t per_row = 1;
    for (const Step& step : plan_.steps) {
      const auto* experts = std::get_if<ExpertsStep>(&step.kind);
      if (experts != nullptr) per_row = std::max(per_row, most_chosen(plan_, *experts));
    }
    constexpr std::size_t kMostBlocks = 65'535;
    if (rows > kMostBlocks / per_row) {
      throw Error("a pass on a GPU: expected at most {} rows, found {}", kMostBlocks / per_row,
                  rows);
    }
    workspace_.reset();  // first, so that the GPU never holds two workspaces
    try {
      workspace_.emplace(plan_, rows);
    } catch (...) {  // the sequences that exist go on with one as before
      if (before != 0) workspace_.emplace(plan_, before);
      throw;
    }
  }

  void check(std::span<const Input> inputs, MatrixView<float> logits) const {
    PassCheck pass(plan_, max_rows());
    for (const Input& input : inputs) {
      const Sequence& sequence = *input.sequence;
      pass.text(input.tokens, input.n_logits, input.rows);
      check_next_tokens(plan_, input.tokens, sequence.length(), sequence.capacity());
    }
    pass.end(logits);
  }

  const Plan& plan_;
  const PlanTables tables_;
  const DeviceWeights weights_;
  SlotTable slots_;
  PassRows rows_;
  std::optional<PassWorkspace> workspace_;  // empty before the first sequence
  Recorder recorder_;  // last, so that its records are released before the memory that they use
};

}  // namespace

std::size_t n_repeated_passes() { return repeated_passes; }

}  // namespace cuda

std::string_view cuda_backend_name() { return cuda::device_kind(); }

std::unique_ptr<Backend> make_cuda_backend(const Plan& plan, const Checkpoint& checkpoint,
                                           KvType kv_type) {
  cuda::check_plan(plan);
  cuda::check_capability(cuda::use_device());
  return std::make_unique<cuda::CudaBackend>(plan, checkpoint, kv_type);
}

}  // namespace stagecraft
