// Compares the engine with PyTorch: every activation of every tiny model that
// reference/make_models.py made, with the f64 oracle and the tolerance that it measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "inspection/trace.h"
#include "inspection/trace_file.h"
#include "model/placement.h"
#include "tests/support/engines.h"
#include "tests/support/random_model.h"
#include "tests/support/same_bits.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

using Passes = std::vector<std::size_t>;

// least: the fewest tokens of the first pass.
std::vector<Passes> every_cut_in_two(std::size_t seq_len, std::size_t least) {
  std::vector<Passes> cuts;
  for (std::size_t first = least; first < seq_len; ++first) {
    cuts.push_back({first, seq_len - first});
  }
  return cuts;
}

Passes token_by_token(std::size_t seq_len, std::size_t least) {
  Passes passes(seq_len - least + 1, 1);
  passes.front() = least;
  return passes;
}

std::span<const float> last_logits(const std::vector<Activation>& activations) {
  const Matrix<float>& logits = activations.back().values;
  return {logits.data(), logits.rows() * logits.cols()};
}

class Reference : public testing::TestWithParam<std::string> {
 protected:
  void expect_agreement(const Passes& passes) {
    const auto activations = trace(engine_, ids_, passes);
    const nlohmann::json tolerances = nlohmann::json::parse(oracle_.metadata().at("tolerance"));
    ASSERT_EQ(activations.size(), oracle_.order().size());
    for (std::size_t i = 0; i < activations.size(); ++i) {
      const std::string& name = activations[i].name;
      ASSERT_EQ(name, oracle_.order()[i]);
      const double allowed = tolerances.at(name).get<double>();
      const Comparison result =
          compare_tensors(oracle_.tensor(name), activations[i].stored(), {0.0, allowed});
      ASSERT_EQ(result.nan_a + result.nan_b, 0u) << name;
      ASSERT_EQ(result.differing, 0u)
          << name << ": " << result.differing << " of " << result.count << " differ, the worst at "
          << place_in_trace(name, activations[i].shape, result.worst.index, head_dim())
          << ": expected " << result.worst.a << ", got " << result.worst.b << ", off by "
          << result.worst.size() << " (allowed " << allowed << "); passes of "
          << testing::PrintToString(passes);
    }
  }

  std::size_t head_dim() const { return engine_.plan().caches.front().head_dim; }

  const fs::path folder_ = fs::path(TEST_DATA "/models") / GetParam();
  Engine engine_ = walker_engine(folder_);
  const TraceFile oracle_{folder_ / "trace.safetensors"};
  const std::vector<TokenId> ids_ = ids_of(oracle_);
  const std::size_t least_ = first_pass(engine_.plan(), ids_);
};

TEST_P(Reference, WholePromptAgreesWithPyTorch) { expect_agreement({ids_.size()}); }

TEST_P(Reference, TokenByTokenAgreesWithPyTorch) {
  expect_agreement(token_by_token(ids_.size(), least_));
}

TEST_P(Reference, EveryCutInTwoAgreesWithPyTorch) {
  for (const Passes& passes : every_cut_in_two(ids_.size(), least_)) expect_agreement(passes);
}

TEST_P(Reference, NoCutChangesABitOfAnyActivation) {
  const auto whole = trace(engine_, ids_, Passes{ids_.size()});
  std::vector<Passes> cuts = every_cut_in_two(ids_.size(), least_);
  cuts.push_back(token_by_token(ids_.size(), least_));
  const std::size_t two = std::max<std::size_t>(2, least_);
  cuts.push_back({two, 1, ids_.size() - two - 1});
  for (const Passes& passes : cuts) {
    const auto cut = trace(engine_, ids_, passes);
    ASSERT_EQ(cut.size(), whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const std::span a(whole[i].values.data(), whole[i].values.rows() * whole[i].values.cols());
      const std::span b(cut[i].values.data(), cut[i].values.rows() * cut[i].values.cols());
      ASSERT_TRUE(same_bits(a, b))
          << whole[i].name << ", passes of " << testing::PrintToString(passes);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(EveryModel, Reference, testing::ValuesIn(tiny_model_names()),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// The tiny models are too small for `linear` to use several threads; this model is large enough,
// even for one token.
TEST(Determinism, NeitherCutsNorThreadsChangeABitOfTheLogits) {
  const TemporaryFolder folder;
  write_random_model(folder.path(), {.vocab_size = 1003});
  Engine engine = textbook_engine(folder.path());
  const std::vector<TokenId> ids = {1, 500, 3, 1002, 0, 77, 500, 12, 9, 300, 41};
  const auto expected = trace(engine, ids, Passes{ids.size()});
  for (const std::size_t n_threads : {1, 2, 3, 5}) {
    engine.use_threads(n_threads);
    for (const Passes& passes : {Passes{11}, Passes{1, 10}, Passes{4, 4, 3}, Passes(11, 1)}) {
      const auto got = trace(engine, ids, passes);
      EXPECT_TRUE(same_bits(last_logits(got), last_logits(expected)))
          << n_threads << " threads, passes of " << testing::PrintToString(passes);
    }
  }
}

}  // namespace
}  // namespace stagecraft
