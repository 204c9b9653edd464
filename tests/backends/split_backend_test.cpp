// The two parts of a model on two CPU backends give the same bits as the whole model on one.
// tests/cuda_backend runs the second part on a GPU.
#include "backends/split/split_backend.h"

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/engine.h"
#include "base/error.h"
#include "checkpoint/model_source.h"
#include "inspection/trace_file.h"
#include "model/placement.h"
#include "model/plan_split.h"
#include "tests/support/error_of.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kThreads = 2;

// A whole model, and the same model with its last n layers on another backend.
struct WholeAndSplit {
  WholeAndSplit(const ModelSource& model, std::size_t n, KvType kv_type = KvType::F32)
      : plan(describe_model(model).plan),
        checkpoint(Checkpoint::open(model)),
        checkpoint_of_split(Checkpoint::open(model)),  // a backend drops copies of tensors
        whole(make_cpu_backend(plan, checkpoint, kv_type, kThreads)) {
    const auto on_cpu = [&](const Plan& part) {
      return make_cpu_backend(part, checkpoint_of_split, kv_type, kThreads);
    };
    split = make_split_backend(plan, n, on_cpu, on_cpu);
    const fs::path trace = model.path() / "trace.safetensors";
    if (fs::exists(trace)) ids = ids_of(TraceFile(trace));
  }

  const Plan plan;
  const Checkpoint checkpoint, checkpoint_of_split;
  std::unique_ptr<Backend> whole, split;
  std::vector<TokenId> ids;
};

// The logits after the last n_logits of these tokens.
std::vector<float> pass(const Plan& plan, Backend& backend, Sequence& sequence,
                        std::span<const TokenId> tokens, std::size_t n_logits) {
  Matrix<float> logits(n_logits, plan.vocab_size);
  const Input input{&sequence, tokens, n_logits};
  backend.forward({&input, 1}, logits.view());
  return {logits.data(), logits.data() + n_logits * plan.vocab_size};
}

// This program is not linked with the emulator, whose GPU would use the host's memory, too.
TEST(SplitBackend, OnlyWhatIsOnTheCpuIsInTheMemoryOfTheHost) {
  const Plan plan = describe_model(ModelSource(kModels + "llama-gqa2")).plan;
  const auto bytes = [](const Plan& of, EngineOptions options) {
    const SequenceBytes found = sequence_bytes(of, options, 100);
    return std::pair(found.cache, found.workspace);
  };
  const EngineOptions cpu{BackendKind::Cpu, 1, KvType::F16};
  const auto with_gpu_layers = [&](std::size_t n) {
    return bytes(plan, {BackendKind::Cuda, 1, KvType::F16, n});
  };
  EXPECT_EQ(with_gpu_layers(0), bytes(plan, cpu));
  EXPECT_EQ(with_gpu_layers(1), bytes(split_plan(plan, 1).front, cpu));
  EXPECT_EQ(with_gpu_layers(plan.n_layers), std::pair(0.0, 0.0));
  EXPECT_EQ(bytes(plan, {BackendKind::Cuda, 1, KvType::F16}), std::pair(0.0, 0.0));
}

TEST(SplitBackend, HasTheBitsOfTheWholeModel) {
  std::size_t n_split = 0;
  for (const std::string& name : tiny_model_names()) {
    const Plan plan = describe_model(ModelSource(kModels + name)).plan;
    for (std::size_t n = 1; n < plan.n_layers; ++n) {
      if (!can_split(plan, n)) continue;
      ++n_split;
      const WholeAndSplit one(ModelSource(kModels + name), n);
      const auto a = one.whole->make_sequence(one.ids.size(), 0);
      const auto b = one.split->make_sequence(one.ids.size(), 0);
      const std::span<const TokenId> ids(one.ids);
      // Every token is scored, then none, then one at a time.
      const std::size_t first = first_pass(plan, ids), rest = std::min(ids.size(), first + 2);
      const auto expect_same = [&](std::span<const TokenId> tokens, std::size_t n_logits) {
        EXPECT_TRUE(same_bits(pass(plan, *one.whole, *a, tokens, n_logits),
                              pass(plan, *one.split, *b, tokens, n_logits)))
            << name << ", " << n << " layers";
      };
      expect_same(ids.first(first), first);
      expect_same(ids.subspan(first, rest - first), 0);
      for (std::size_t i = rest; i < ids.size(); ++i) expect_same(ids.subspan(i, 1), 1);
      EXPECT_EQ(b->length(), ids.size()) << name;
    }
  }
  EXPECT_GT(n_split, tiny_model_names().size());
}

// A part drops only the copies of its own tensors. (AddressSanitizer reports a read of a dropped
// copy.)
TEST(SplitBackend, APartLeavesTheTensorsOfTheOther) {
  const std::vector<TokenId> ids = {1, 5, 9, 2, 33, 7};
  std::size_t n_with_copies = 0;
  for (const auto& file : fs::directory_iterator(TEST_DATA "/gguf")) {
    if (!fs::is_directory(kModels + file.path().stem().string())) continue;  // not a whole model
    const ModelSource model(file.path());
    const Plan plan = describe_model(model).plan;
    if (!can_split(plan, 1)) continue;
    const WholeAndSplit one(model, 1);
    n_with_copies += Checkpoint::open(model).copied_bytes() != 0;
    const auto a = one.whole->make_sequence(ids.size(), 0);
    const auto b = one.split->make_sequence(ids.size(), 0);
    EXPECT_TRUE(same_bits(pass(plan, *one.whole, *a, ids, ids.size()),
                          pass(plan, *one.split, *b, ids, ids.size())))
        << file.path().filename();
    EXPECT_EQ(one.checkpoint_of_split.copied_bytes(), one.checkpoint.copied_bytes());
  }
  EXPECT_GT(n_with_copies, 0u);
}

TEST(SplitBackend, SequencesOfUnequalLengthsShareAPass) {
  for (const KvType type : {KvType::F16, KvType::Q8_0}) {
    const WholeAndSplit one(ModelSource(kModels + "qwen3_5-interval"), 2, type);
    const std::span<const TokenId> ids(one.ids);
    std::vector<std::vector<float>> scores;
    for (Backend* backend : {one.whole.get(), one.split.get()}) {
      const auto sequences = backend->make_sequences(2, 0, ids.size(), 0);
      pass(one.plan, *backend, *sequences[0], ids.first(3), 0);
      const Input both[] = {{sequences[1].get(), ids.first(4), 2},
                            {sequences[0].get(), ids.subspan(3, 2), 1}};
      Matrix<float> logits(3, one.plan.vocab_size);
      backend->forward(both, logits.view());
      scores.emplace_back(logits.data(), logits.data() + 3 * one.plan.vocab_size);
      std::vector<TokenId> likeliest(1, 5);
      const Input next{sequences[0].get(), ids.subspan(5, 1), 1};
      backend->forward_greedy({&next, 1}, logits.top_rows(1), likeliest);
      EXPECT_EQ(likeliest[0], -1);  // the CPU backend always writes logits
      scores.emplace_back(logits.data(), logits.data() + one.plan.vocab_size);
    }
    EXPECT_TRUE(same_bits(scores[0], scores[2]));
    EXPECT_TRUE(same_bits(scores[1], scores[3]));
  }
}

TEST(SplitBackend, ASequenceIsCutAndCopied) {
  const WholeAndSplit one(ModelSource(kModels + "llama-gqa2"), 1);
  const std::span<const TokenId> ids(one.ids);
  const auto whole = one.whole->make_sequence(ids.size(), 0);
  const auto expected = pass(one.plan, *one.whole, *whole, ids, 1);
  const auto a = one.split->make_sequence(ids.size(), 0);
  const auto b = one.split->make_sequence(ids.size(), 0);
  pass(one.plan, *one.split, *a, ids, 1);
  EXPECT_FALSE(b->copy(*a, ids.size() + 1));
  ASSERT_TRUE(b->copy(*a, 3));
  EXPECT_EQ(b->length(), 3u);
  EXPECT_EQ(a->truncate(4), 4u);
  EXPECT_TRUE(same_bits(pass(one.plan, *one.split, *a, ids.subspan(4), 1), expected));
  EXPECT_TRUE(same_bits(pass(one.plan, *one.split, *b, ids.subspan(3), 1), expected));
}

// Only one of the parts has a state: the back of lfm2-conv-last, the front of qwen3_5-interval. Its
// texts can only be kept whole or forgotten, so the other part must do the same.
TEST(SplitBackend, StatesOfOnePartDecideForBoth) {
  for (const char* name : {"lfm2-conv-last", "qwen3_5-interval"}) {
    const WholeAndSplit one(ModelSource(kModels + name), 1);
    const auto [front, back] = split_plan(one.plan, 1);
    const auto has_states = [](const Plan& part) {
      return std::ranges::any_of(part.states, [](const StateShape& s) { return s.rows != 0; });
    };
    EXPECT_NE(has_states(back), std::string(name) == "qwen3_5-interval");
    const std::span<const TokenId> ids(one.ids);
    const auto whole = one.whole->make_sequence(ids.size(), 0);
    const auto expected = pass(one.plan, *one.whole, *whole, ids, 1);
    const auto a = one.split->make_sequence(ids.size(), 0);
    const auto b = one.split->make_sequence(ids.size(), 0);
    pass(one.plan, *one.split, *a, ids.first(4), 0);
    pass(one.plan, *one.split, *b, ids.first(1), 0);
    EXPECT_FALSE(b->copy(*a, 3)) << name;
    EXPECT_EQ(b->length(), 1u) << name;
    ASSERT_TRUE(b->copy(*a, 4)) << name;
    EXPECT_EQ(a->truncate(3), 0u) << name;
    EXPECT_EQ(a->length(), 0u) << name;
    EXPECT_TRUE(same_bits(pass(one.plan, *one.split, *a, ids, 1), expected)) << name;
    EXPECT_TRUE(same_bits(pass(one.plan, *one.split, *b, ids.subspan(4), 1), expected)) << name;
  }
}

TEST(SplitBackend, RefusesWhatItCannotDoAndStaysAsItWas) {
  const WholeAndSplit one(ModelSource(kModels + "lfm2-biases"), 1);
  Backend& backend = *one.split;
  const auto sequence = backend.make_sequence(8, 4);
  const std::vector<TokenId> ids(9, 1), wrong = {1, 10'000};
  pass(one.plan, backend, *sequence, std::span(ids).first(2), 1);
  const auto refusal = [&](std::span<const TokenId> tokens, std::size_t n_logits) {
    return error_of([&] { pass(one.plan, backend, *sequence, tokens, n_logits); });
  };
  EXPECT_EQ(refusal(wrong, 1), "forward: token id: expected 0 to 36, found 10000");
  EXPECT_EQ(refusal(ids, 1), "forward: expected 1 to 4 tokens, found 9");
  EXPECT_EQ(refusal({}, 0), "forward: expected 1 to 4 tokens, found 0");
  EXPECT_EQ(refusal(std::span(ids).first(1), 2),
            "forward: expected at most 1 tokens to score, found 2");
  Matrix<float> narrow(1, 3);
  const Input input{sequence.get(), std::span(ids).first(1), 1};
  EXPECT_EQ(error_of([&] {
              backend.forward({&input, 1}, narrow.view());
            }),
            "forward: logits: expected [1, 37], found [1, 3]");
  EXPECT_EQ(backend.step_results(), nullptr);
  EXPECT_EQ(sequence->length(), 2u);
  pass(one.plan, backend, *sequence, std::span(ids).first(4), 1);
  EXPECT_EQ(refusal(std::span(ids).first(3), 1),
            "forward: expected at most 2 more tokens in the context, found 3");
}

// A GPU may fail after the front has run; then it often refuses everything else, too.
class FailingSequence final : public Sequence {
 public:
  FailingSequence(std::unique_ptr<Sequence> real, const bool& fails)
      : real_(std::move(real)), fails_(fails) {}
  std::size_t length() const override { return real_->length(); }
  std::size_t capacity() const override { return real_->capacity(); }
  std::size_t truncate(std::size_t length) override {
    if (fails_) throw Error("truncate: failed");
    return real_->truncate(length);
  }
  Sequence& real() const { return *real_; }

 private:
  std::unique_ptr<Sequence> real_;
  const bool& fails_;
};

class FailingBackend final : public Backend {
 public:
  explicit FailingBackend(std::unique_ptr<Backend> real) : real_(std::move(real)) {}
  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows) override {
    return std::make_unique<FailingSequence>(real_->make_sequence(context, max_rows), refuses_cuts);
  }
  void forward(std::span<const Input> inputs, MatrixView<float> logits) override {
    if (fails) throw Error("kernel: failed");
    std::vector<Input> real(inputs.begin(), inputs.end());
    for (Input& input : real) {
      input.sequence = &static_cast<const FailingSequence&>(*input.sequence).real();
    }
    real_->forward(real, logits);
  }
  std::size_t max_rows() const override { return real_->max_rows(); }
  std::size_t n_threads() const override { return 1; }
  void use_threads(std::size_t) override {}
  bool fails = false;
  bool refuses_cuts = false;

 private:
  std::unique_ptr<Backend> real_;
};

TEST(SplitBackend, BothPartsStayAsTheyWereWhereTheBackFails) {
  const WholeAndSplit one(ModelSource(kModels + "llama-gqa2"), 1);
  FailingBackend* failing = nullptr;
  const auto on_cpu = [&](const Plan& part) {
    return make_cpu_backend(part, one.checkpoint, KvType::F32, kThreads);
  };
  const auto backend = make_split_backend(one.plan, 1, on_cpu, [&](const Plan& part) {
    auto made = std::make_unique<FailingBackend>(on_cpu(part));
    failing = made.get();
    return made;
  });
  const std::span<const TokenId> ids(one.ids);
  const auto whole = one.whole->make_sequence(ids.size(), 0);
  const auto expected = pass(one.plan, *one.whole, *whole, ids, 1);
  const auto rest = ids.subspan(2);
  Matrix<float> logits(2, one.plan.vocab_size);
  for (const bool refuses_cuts : {false, true}) {
    const auto a = backend->make_sequence(ids.size(), 2 * ids.size());
    const auto b = backend->make_sequence(ids.size(), 2 * ids.size());
    for (Sequence* sequence : {a.get(), b.get()}) {
      pass(one.plan, *backend, *sequence, ids.first(2), 0);
    }
    failing->fails = true;
    failing->refuses_cuts = refuses_cuts;
    const Input both[] = {{a.get(), rest, 1}, {b.get(), rest, 1}};
    EXPECT_EQ(error_of([&] { backend->forward(both, logits.view()); }), "kernel: failed");
    failing->fails = failing->refuses_cuts = false;
    for (Sequence* sequence : {a.get(), b.get()}) {
      EXPECT_EQ(sequence->length(), 2u);
      EXPECT_TRUE(same_bits(pass(one.plan, *backend, *sequence, rest, 1), expected))
          << refuses_cuts << ": the front kept tokens of the pass that failed";
    }
  }
}

}  // namespace
}  // namespace stagecraft
