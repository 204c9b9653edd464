// The CPU backend against PyTorch and against itself, with the kernels of every instruction set
// that this processor runs.
#include "backends/cpu/cpu_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <random>

#include "backends/cpu/thread_slice.h"
#include "base/error.h"
#include "convert/convert.h"
#include "inspection/trace_file.h"
#include "model/description.h"
#include "tests/support/engines.h"
#include "tests/support/random_model.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

std::vector<const char*> isa_names() {
  std::vector<const char*> names;
  for (const Kernels* table : runnable_kernels()) names.push_back(table->name);
  return names;
}

const Kernels& kernels_of(std::string_view isa) {
  for (const Kernels* table : runnable_kernels()) {
    if (table->name == isa) return *table;
  }
  throw Error("no kernels '{}'", isa);
}

constexpr WeightLayout kCacheKinds[] = {WeightLayout::F32, WeightLayout::F16,
                                        WeightLayout::RoundedBF16, WeightLayout::Q8_0};

// A model with its weights packed, for passes with kernels and threads of the test's choice.
struct Packed {
  explicit Packed(const fs::path& path)
      : checkpoint(Checkpoint::open(path)),
        plan(describe_model(path).plan),
        fused(fuse(plan)),
        weights(pack_weights(plan, fused, checkpoint, one_thread)) {}

  CpuWorkspace workspace(const Kernels& table, std::size_t rows, std::size_t n_threads) const {
    return {plan, fused, table, rows, n_threads};
  }
  void pass(std::span<const SequenceTokens> batch, CpuWorkspace& w,
            MatrixView<float> logits) const {
    cpu_pass({plan, fused, weights}, batch, w, logits);
  }

  ThreadPool one_thread{1};
  const Checkpoint checkpoint;
  const Plan plan;
  const FusedPlan fused;
  const PackedWeights weights;
};

// All logits of a text that is computed in passes of these lengths.
Matrix<float> logits_of(const Packed& model, const Kernels& table, std::span<const TokenId> ids,
                        std::vector<std::size_t> passes, std::size_t n_threads,
                        WeightLayout cache_layout = WeightLayout::F32) {
  PackedKvCache cache(model.plan.caches, ids.size(), cache_layout);
  SequenceState state = cpu_state(model.plan);
  CpuWorkspace workspace(model.plan, model.fused, table, ids.size(), n_threads);
  Matrix<float> logits(ids.size(), model.plan.vocab_size);
  for (const std::size_t n : passes) {
    const std::size_t first = cache.length();
    const SequenceTokens one{&cache, ids.subspan(first, n), n, &state};
    model.pass({&one, 1}, workspace, logits.view().row_range(first, n));
  }
  return logits;
}

bool same_matrices(const Matrix<float>& a, const Matrix<float>& b) {
  return std::memcmp(a.data(), b.data(), a.rows() * a.cols() * sizeof(float)) == 0;
}

// How often each panel is multiplied with each row, by all threads together.
std::vector<int> times_computed(CpuWorkspace& w, std::size_t n_threads, std::size_t panels,
                                Range rows, std::size_t together) {
  std::vector<int> times(panels * rows.end);
  for (std::size_t thread = 0; thread < n_threads; ++thread) {
    const ThreadSlice slice(w, thread, n_threads);
    slice.slice_tiles(panels, rows, together, [&](Range of_panels, Range of_rows) {
      for (std::size_t panel = of_panels.begin; panel < of_panels.end; ++panel) {
        for (std::size_t r = of_rows.begin; r < of_rows.end; ++r) ++times[panel * rows.end + r];
      }
    });
  }
  return times;
}

TEST(ThreadSlice, MultipliesEachPanelWithEachRowOnce) {
  const Packed model(TEST_DATA "/models/" + tiny_model_names().front());
  for (const char* isa : isa_names()) {
    for (std::size_t n_threads = 1; n_threads <= 5; ++n_threads) {
      CpuWorkspace w = model.workspace(kernels_of(isa), 1, n_threads);
      for (const Range rows : {Range{0, 1}, Range{3, 99}, Range{0, 97}, Range{0, 512}}) {
        for (const std::size_t together : {1u, 96u, 128u, 1000u}) {
          for (const std::size_t panels : {1u, 7u}) {
            const auto times = times_computed(w, n_threads, panels, rows, together);
            for (std::size_t i = 0; i < times.size(); ++i) {
              ASSERT_EQ(times[i], i % rows.end >= rows.begin ? 1 : 0)
                  << isa << ", " << n_threads << " threads, row " << i % rows.end << " of "
                  << rows.begin << " to " << rows.end << ", " << together << " together";
            }
          }
        }
      }
    }
  }
}

class CpuReference : public testing::TestWithParam<std::string> {};

void expect_logits_of(const Packed& model, const TraceFile& oracle, const Kernels& table) {
  const std::vector<TokenId> ids = ids_of(oracle);
  const nlohmann::json tolerances = nlohmann::json::parse(oracle.metadata().at("tolerance"));

  const Matrix<float> whole = logits_of(model, table, ids, {ids.size()}, 1);
  const StoredTensor& expected = oracle.tensor("logits");
  const StoredTensor got{"logits", DType::F32, expected.shape,
                         std::as_bytes(std::span(whole.data(), whole.rows() * whole.cols()))};
  const Comparison result =
      compare_tensors(expected, got, {0.0, tolerances.at("logits").get<double>()});
  EXPECT_EQ(result.nan_a + result.nan_b, 0u);
  EXPECT_EQ(result.differing, 0u) << "off by " << result.worst.size();

  for (const WeightLayout kind : kCacheKinds) {
    const auto in_passes = [&](std::vector<std::size_t> passes, std::size_t n_threads) {
      return logits_of(model, table, ids, std::move(passes), n_threads, kind);
    };
    const Matrix<float> at_once = in_passes({ids.size()}, 1);
    const std::size_t least = first_pass(model.plan, ids);
    for (std::size_t first = least; first < ids.size(); ++first) {
      EXPECT_TRUE(same_matrices(at_once, in_passes({first, ids.size() - first}, 1 + first % 3)))
          << first << ", kind " << static_cast<int>(kind);
    }
    std::vector<std::size_t> singly(ids.size() - least + 1, 1);
    singly.front() = least;
    EXPECT_TRUE(same_matrices(at_once, in_passes(singly, 2))) << "kind " << static_cast<int>(kind);
  }
}

TEST_P(CpuReference, LogitsAgreeWithPyTorchWhateverThePassesAndThreads) {
  const fs::path folder = fs::path(TEST_DATA "/models") / GetParam();
  const Packed model(folder);
  const TraceFile oracle(folder / "trace.safetensors");
  for (const char* isa : isa_names()) {
    SCOPED_TRACE(isa);
    expect_logits_of(model, oracle, kernels_of(isa));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, CpuReference, testing::ValuesIn(tiny_model_names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Larger than the tiny models: enough panels for all threads, more heads than a tile has rows, keys
// of several chunks. Kinds: without experts, with experts, and with a state that cannot be cut.
enum class Kind { Plain, Experts, Convolves };
class CpuRandom : public testing::TestWithParam<std::tuple<const char*, Kind>> {
 protected:
  CpuRandom() {
    write_random_model(folder_.path(), {.vocab_size = 1003,
                                        .dim = 192,
                                        .ffn_dim = 333,
                                        .n_experts = kind() == Kind::Experts ? 7u : 0u,
                                        .n_chosen = 3,
                                        .convolves = kind() == Kind::Convolves});
    model_.emplace(folder_.path());
    std::mt19937 engine(11);
    for (int i = 0; i < 150; ++i) ids_.push_back(static_cast<TokenId>(engine() % 1003));
  }
  static Kind kind() { return std::get<1>(GetParam()); }
  const Kernels& kernels() const { return kernels_of(std::get<0>(GetParam())); }

  TemporaryFolder folder_;
  std::optional<Packed> model_;
  std::vector<TokenId> ids_;
};

TEST_P(CpuRandom, GivesTheSameBitsForAnyPassesAndThreads) {
  for (const WeightLayout kind : kCacheKinds) {
    const Matrix<float> whole = logits_of(*model_, kernels(), ids_, {150}, 1, kind);
    std::mt19937 engine(12);
    for (std::size_t n_threads = 1; n_threads <= 4; ++n_threads) {
      std::vector<std::size_t> passes;
      for (std::size_t left = 150; left != 0; left -= passes.back()) {
        passes.push_back(std::min<std::size_t>(left, 1 + engine() % (n_threads * 20)));
      }
      EXPECT_TRUE(
          same_matrices(whole, logits_of(*model_, kernels(), ids_, passes, n_threads, kind)))
          << n_threads << " threads, passes of " << testing::PrintToString(passes) << ", kind "
          << static_cast<int>(kind);
    }
  }
}

// A text that is cut half-way leaves nothing behind in any chunk.
TEST_P(CpuRandom, GivesTheSameBitsAfterGoingBack) {
  for (const WeightLayout kind : kCacheKinds) {
    const Matrix<float> expected = logits_of(*model_, kernels(), ids_, {150}, 1, kind);
    CpuWorkspace workspace(model_->plan, model_->fused, kernels(), 150, 2);
    PackedKvCache cache(model_->plan.caches, 150, kind);
    SequenceState state = cpu_state(model_->plan);
    Matrix<float> logits(150, model_->plan.vocab_size);
    const auto pass = [&](std::span<const TokenId> ids) {
      const SequenceTokens one{&cache, ids, ids.size(), &state};
      model_->pass({&one, 1}, workspace, logits.top_rows(ids.size()));
    };
    const std::vector<TokenId> others(ids_.rbegin(), ids_.rend());
    pass(others);
    cache.truncate(state.truncate(150, 0));
    pass(std::span(ids_).first(37));
    pass(std::span(others).first(100));
    const std::size_t kept = state.truncate(137, 37);
    EXPECT_EQ(kept, CpuRandom::kind() == Kind::Convolves ? 0u : 37u);
    cache.truncate(kept);
    if (kept == 0) pass(std::span(ids_).first(37));
    pass(std::span(ids_).subspan(37));
    for (std::size_t i = 37; i < 150; ++i) {
      const auto got = logits.view().row(i - 37);
      const auto row = expected.view().row(i);
      ASSERT_TRUE(std::equal(got.begin(), got.end(), row.begin()))
          << "row " << i << ", kind " << static_cast<int>(kind);
    }
  }
}

// Sequences of different lengths join and leave the batch. Each gets the logits that it gets alone.
TEST_P(CpuRandom, GivesEachSequenceOfABatchWhatItIsGivenAlone) {
  for (const std::size_t n_threads : {1, 3}) {
    const WeightLayout kind = n_threads == 1 ? WeightLayout::F32 : WeightLayout::Q8_0;
    const Matrix<float> alone = logits_of(*model_, kernels(), ids_, {150}, 1, kind);
    CpuWorkspace workspace(model_->plan, model_->fused, kernels(), 64, n_threads);
    std::vector<PackedKvCache> caches;
    std::vector<SequenceState> states;
    for (int i = 0; i < 5; ++i) {
      caches.emplace_back(model_->plan.caches, 150, kind);
      states.push_back(cpu_state(model_->plan));
    }
    Matrix<float> logits(64, model_->plan.vocab_size);
    std::mt19937 engine(13);
    for (int pass = 0; pass < 40; ++pass) {
      std::vector<SequenceTokens> batch;
      std::vector<std::size_t> rows;  // of `alone`, in the order of the logits
      for (std::size_t s = 0; s < caches.size(); ++s) {
        PackedKvCache& cache = caches[s];
        if (engine() % 3 == 0) continue;
        const std::size_t n = pass % 4 == 0 ? 1 + engine() % 12 : 1;
        if (cache.length() + n > ids_.size()) continue;
        const std::size_t scored = engine() % (n + 1);
        batch.push_back({&cache, std::span(ids_).subspan(cache.length(), n), scored, &states[s]});
        for (std::size_t i = n - scored; i < n; ++i) rows.push_back(cache.length() + i);
      }
      if (batch.empty()) continue;
      model_->pass(batch, workspace, logits.top_rows(rows.size()));
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto got = logits.view().row(i);
        const auto expected = alone.view().row(rows[i]);
        ASSERT_TRUE(std::equal(got.begin(), got.end(), expected.begin()))
            << "pass " << pass << ", row " << i;
      }
    }
  }
}

TEST_P(CpuRandom, KeepsKeysAndValuesAsHalvesNearlyAsWell) {
  const Matrix<float> f32 = logits_of(*model_, kernels(), ids_, {150}, 2);
  const Matrix<float> f16 = logits_of(*model_, kernels(), ids_, {150}, 2, WeightLayout::F16);
  EXPECT_FALSE(same_matrices(f32, f16));
  double largest = 0.0, off = 0.0;
  for (std::size_t i = 0; i < f32.rows() * f32.cols(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(f32.data()[i])));
    off = std::max(off, std::abs(static_cast<double>(f32.data()[i] - f16.data()[i])));
  }
  EXPECT_LT(off, largest * 0x1p-8);  // halves have 11 bits
}

TEST_P(CpuRandom, RefusesWhatDoesNotFitAndForgetsNothing) {
  CpuWorkspace workspace(model_->plan, model_->fused, kernels(), 8, 1);
  PackedKvCache cache(model_->plan.caches, 10, WeightLayout::F32);
  SequenceState state = cpu_state(model_->plan);
  Matrix<float> logits(8, model_->plan.vocab_size);
  const auto pass = [&](std::vector<TokenId> ids) {
    const SequenceTokens one{&cache, ids, 0, &state};
    model_->pass({&one, 1}, workspace, logits.top_rows(0));
  };
  pass({1, 2, 3, 4, 5, 6});
  EXPECT_THROW(pass({}), Error);
  EXPECT_THROW(pass({1, 2, 3, 4, 5}), Error);
  EXPECT_THROW(pass({1003}), Error);
  EXPECT_THROW(pass({-1}), Error);
  EXPECT_THROW(pass(std::vector<TokenId>(9, 1)), Error);
  const std::vector<TokenId> three{1, 2, 3};
  const SequenceTokens more{&cache, three, 4, &state};  // 4 scored tokens of 3
  EXPECT_THROW(model_->pass({&more, 1}, workspace, logits.top_rows(4)), Error);
  EXPECT_EQ(cache.length(), 6u);
}

TEST_P(CpuRandom, RefusesATextForWhichNoMemoryIsLeft) {
  CpuWorkspace workspace(model_->plan, model_->fused, kernels(), 8, 1);
  const auto pages = make_kv_pages(model_->plan.caches, 10, WeightLayout::F32, 1);
  PackedKvCache one(model_->plan.caches, 10, WeightLayout::F32, pages);
  PackedKvCache other(model_->plan.caches, 10, WeightLayout::F32, pages);
  SequenceState state = cpu_state(model_->plan), other_state = cpu_state(model_->plan);
  const std::vector<TokenId> ids{1, 2, 3};
  const SequenceTokens first[] = {{&one, ids, 0, &state}},
                       second[] = {{&other, ids, 0, &other_state}};
  Matrix<float> none(1, model_->plan.vocab_size);
  model_->pass(first, workspace, none.top_rows(0));
  EXPECT_THROW(model_->pass(second, workspace, none.top_rows(0)), Error);
  EXPECT_EQ(other.length(), 0u);
  one.truncate(0);
  model_->pass(second, workspace, none.top_rows(0));
  EXPECT_EQ(other.length(), 3u);
}

// A text of several segments: if a pass has one token, the threads share the segments.
class LongText : public testing::TestWithParam<std::tuple<const char*, std::size_t>> {
 protected:
  void expect_same_bits(const fs::path& path) {
    const Packed model(path);
    const Kernels& kernels = kernels_of(std::get<0>(GetParam()));
    const std::size_t n = 1300;
    std::mt19937 engine(14);
    std::vector<TokenId> ids;
    while (ids.size() < n) {
      ids.push_back(static_cast<TokenId>(engine() % model.plan.vocab_size));
    }
    std::vector<std::size_t> counts = {1, 2, 4, 5};  // 4: two groups of two
    if (std::get<0>(GetParam()) == std::string_view("portable")) counts = {1, 4};  // much slower
    for (const WeightLayout kind : kCacheKinds) {
      const Matrix<float> whole = logits_of(model, kernels, ids, {n}, 1, kind);
      for (const std::size_t n_threads : counts) {
        // Tokens on both sides of the end of a segment, and far behind it.
        std::vector<std::size_t> passes{509, 1, 1, 1, 1, 1, 1, 1, 500, 3, 1, 1};
        const auto read = std::accumulate(passes.begin(), passes.end(), std::size_t{0});
        passes.insert(passes.end(), n - read, 1);
        EXPECT_TRUE(same_matrices(whole, logits_of(model, kernels, ids, passes, n_threads, kind)))
            << n_threads << " threads, kind " << static_cast<int>(kind);
      }
    }
  }
};

TEST_P(LongText, HasTheSameBitsForAnyPassesAndThreads) {
  TemporaryFolder folder;
  write_random_model(folder.path(), {.vocab_size = 1003,
                                     .dim = 192,
                                     .n_heads = 6,
                                     .n_kv_heads = 3,
                                     .window = std::get<1>(GetParam())});
  expect_same_bits(folder.path());
}

TEST_P(LongText, IsReadAsTheTextbookReadsIt) {
  TemporaryFolder folder;
  write_random_model(folder.path(), {.window = std::get<1>(GetParam())});
  Engine textbook = textbook_engine(folder.path());
  std::vector<TokenId> ids;
  for (TokenId i = 0; i < 1300; ++i) ids.push_back(i * i % 515);
  const auto sequence = textbook.make_sequence(ids.size());
  Matrix<float> expected(ids.size(), 515);
  for (std::size_t first = 0; first < ids.size(); first += 50) {
    const Input input{sequence.get(), std::span(ids).subspan(first, 50), 50};
    textbook.forward({&input, 1}, expected.view().row_range(first, 50));
  }
  const Packed model(folder.path());
  const Kernels& kernels = kernels_of(std::get<0>(GetParam()));
  const Matrix<float> found = logits_of(model, kernels, ids, {1290, 9, 1}, 3);
  float largest = 0.0f, off = 0.0f;
  for (std::size_t i = 0; i < found.rows() * found.cols(); ++i) {
    largest = std::max(largest, std::abs(expected.data()[i]));
    off = std::max(off, std::abs(found.data()[i] - expected.data()[i]));
  }
  EXPECT_LT(off, largest * 1e-5f);
}

INSTANTIATE_TEST_SUITE_P(Isa, LongText,
                         testing::Combine(testing::ValuesIn(isa_names()),
                                          testing::Values(std::size_t{0}, std::size_t{700})),
                         [](const auto& parameter) {
                           const bool has_window = std::get<1>(parameter.param) != 0;
                           return std::get<0>(parameter.param) +
                                  std::string(has_window ? "_window" : "");
                         });

// This model has sinks, and windows in some layers.
class LongTextOfGptOss : public LongText {};
TEST_P(LongTextOfGptOss, HasTheSameBitsForAnyPassesAndThreads) {
  expect_same_bits(TEST_DATA "/models/gpt-oss-2-of-5");
}
INSTANTIATE_TEST_SUITE_P(Isa, LongTextOfGptOss,
                         testing::Combine(testing::ValuesIn(isa_names()),
                                          testing::Values(std::size_t{0})),
                         [](const auto& parameter) {
                           return std::string(std::get<0>(parameter.param));
                         });

std::string kind_name(Kind kind) {
  if (kind == Kind::Plain) return "";
  return kind == Kind::Experts ? "_experts" : "_convolves";
}

INSTANTIATE_TEST_SUITE_P(Isa, CpuRandom,
                         testing::Combine(testing::ValuesIn(isa_names()),
                                          testing::Values(Kind::Plain, Kind::Experts,
                                                          Kind::Convolves)),
                         [](const auto& parameter) {
                           return std::get<0>(parameter.param) +
                                  kind_name(std::get<1>(parameter.param));
                         });

// Each type of weights that a file may have, on every instruction set: the same bits for any passes
// and threads, and close to the textbook backend with the same weights.
class CpuWeights : public testing::TestWithParam<std::tuple<DType, const char*>> {};

TEST_P(CpuWeights, GiveTheSameBitsForAnyPassesAndTheTextbooksLogitsNearly) {
  const auto& [dtype, isa] = GetParam();
  const TemporaryFolder folder;
  write_random_model(folder.path(), {.vocab_size = 515, .dim = 192, .ffn_dim = 352});
  const fs::path file = folder.path() / "model.gguf";
  convert_to_gguf({.model = folder.path(), .out = file, .dtype = dtype, .with_tokenizer = false});
  const Packed model(file);
  std::vector<TokenId> ids(50);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i * 91 % 515);
  const Kernels& kernels = kernels_of(isa);
  const Matrix<float> whole = logits_of(model, kernels, ids, {50}, 1);
  EXPECT_TRUE(same_matrices(whole, logits_of(model, kernels, ids, {1, 12, 5, 31, 1}, 2)));
  EXPECT_TRUE(same_matrices(whole, logits_of(model, kernels, ids, {37, 13}, 3)));

  Engine textbook = textbook_engine(file);
  Matrix<float> expected(50, 515);
  const auto sequence = textbook.make_sequence(50);
  const Input input{sequence.get(), ids, 50};
  textbook.forward({&input, 1}, expected.view());
  double error = 0.0, size = 0.0;
  for (std::size_t i = 0; i < 50 * 515; ++i) {
    error += std::pow(whole.data()[i] - expected.data()[i], 2);
    size += std::pow(expected.data()[i], 2);
  }
  // A byte is off by at most half of 1/127 of the largest number of its block, on average by
  // 1/sqrt(3) of that, and the largest number is about 2.5 times the mean: 0.6% in the rows of each
  // product. There are seven products in each of two layers, and the last one. Random errors add up
  // by their squares.
  const bool bytes = is_quantized(dtype);
  EXPECT_LT(std::sqrt(error / size), bytes ? 0.006 * std::sqrt(15.0) : 1e-5);
  EXPECT_EQ(error > 1e-9 * size, bytes);  // else nothing was rounded to bytes
}

INSTANTIATE_TEST_SUITE_P(EveryType, CpuWeights,
                         testing::Combine(testing::Values(DType::F16, DType::BF16, DType::Q8_0,
                                                          DType::Q4_0, DType::Q4_1),
                                          testing::ValuesIn(isa_names())),
                         [](const auto& parameter) {
                           return std::string(dtype_name(std::get<0>(parameter.param))) + "_" +
                                  std::get<1>(parameter.param);
                         });

TEST(CpuBackend, GoesOnAfterASequenceThatFitsNoMemory) {
  Engine engine = Engine::open(TEST_DATA "/models/llama-gqa2", {BackendKind::Cpu, 2, KvType::F32});
  const auto sequence = engine.make_sequence(8);
  EXPECT_THROW(engine.make_sequence(8, std::size_t{1} << 58), std::bad_alloc);
  const std::vector<TokenId> ids = {1, 2, 3};
  const Input input{sequence.get(), ids, 1};
  Matrix<float> logits(1, 65);
  engine.forward({&input, 1}, logits.view());
  EXPECT_EQ(sequence->length(), 3u);
}

}  // namespace
}  // namespace stagecraft
