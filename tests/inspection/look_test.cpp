#include "inspection/look.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "inspection/trace.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

constexpr std::size_t kPositions = 9;  // some models have no more positions

// A text that this model accepts: some models need a token that ends the prompt.
std::vector<TokenId> text_of(const Plan& plan) {
  std::vector<TokenId> ids = {3, 1, 4, 1, 5, 9, 2};
  if (plan.prompt) ids = {3, plan.prompt->masks.front(), plan.prompt->end, 1, 4, 1, 5};
  return ids;
}

class EveryModel : public testing::TestWithParam<std::string> {};

// Compares with the names in the plan and with the rows of trace().
TEST_P(EveryModel, LooksAtWhatTraceWritesDown) {
  Engine engine = walker_engine(kModels + GetParam());
  const std::vector<TokenId> ids = text_of(engine.plan());
  Session session(engine, kPositions);
  const Look found = look(session, ids).value();
  const std::size_t passes[] = {ids.size()};
  const std::vector<Activation> all = trace(engine, ids, passes);
  const auto last_row = [&](const std::string& name, std::size_t up = 1) {
    const auto at = std::ranges::find(all, name, &Activation::name);
    EXPECT_NE(at, all.end()) << name;
    const auto row = at->values.view().row(at->values.rows() - up);
    return std::vector<float>(row.begin(), row.end());
  };

  EXPECT_EQ(found.logits, last_row("logits"));
  std::size_t attends = 0;
  for (const Look::Attention& one : found.attention) {
    const std::size_t n_heads = one.probabilities.rows();
    for (std::size_t head = 0; head < n_heads; ++head) {
      const auto row = one.probabilities.view().row(head);
      EXPECT_EQ(std::vector<float>(row.begin(), row.end()),
                last_row(fmt::format("layers.{}.attn_probs", one.layer),
                         1 + (n_heads - 1 - head) * ids.size()))
          << one.layer << "." << head;
    }
    ++attends;
  }
  EXPECT_EQ(found.steps.size() + attends, all.size());
  double bytes = 0.0;
  for (const Look::Step& step : found.steps) {
    EXPECT_GE(step.seconds, 0.0);
    bytes += step.bytes;
  }
  EXPECT_GT(bytes, 0.0);
}

TEST_P(EveryModel, TheLastLayersGuessIsTheModelsOwn) {
  Engine engine = walker_engine(kModels + GetParam());
  Session session(engine, kPositions);
  const Look found = look(session, text_of(engine.plan())).value();
  std::vector<float> logits(engine.plan().vocab_size);
  const std::size_t last = engine.plan().n_layers - 1;
  guess(engine, found.residuals.view().row(last), logits);
  EXPECT_EQ(logits, found.logits);
  if (last == 0) return;
  guess(engine, found.residuals.view().row(0), logits);
  EXPECT_NE(logits, found.logits);
}

TEST_P(EveryModel, DoesNotDependOnWhatTheSessionHeldBefore) {
  Engine engine = walker_engine(kModels + GetParam());
  const std::vector<TokenId> ids = text_of(engine.plan());
  Session session(engine, kPositions);
  const Look first = look(session, ids).value();
  std::vector<TokenId> longer = ids;
  longer.push_back(6);
  look(session, longer);
  look(session, ids);
  const Look again = look(session, ids).value();
  EXPECT_EQ(first.logits, again.logits);
  ASSERT_EQ(first.steps.size(), again.steps.size());
  for (std::size_t i = 0; i < first.steps.size(); ++i) {
    EXPECT_EQ(first.steps[i].bytes, again.steps[i].bytes);
    EXPECT_EQ(first.steps[i].name, again.steps[i].name);
  }
}

std::string test_name(const testing::TestParamInfo<std::string>& model) {
  std::string name = model.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Look, EveryModel, testing::ValuesIn(tiny_model_names()), test_name);

TEST(Look, StopsBetweenPassesAndRefusesWhatDoesNotFit) {
  Engine engine = walker_engine(kModels + "llama-mha");
  Session session(engine, kPositions);
  const std::vector<TokenId> ids = {1, 2, 3};
  EXPECT_FALSE(look(session, ids, [] { return false; }).has_value());
  EXPECT_TRUE(look(session, ids, [] { return true; }).has_value());
  EXPECT_THROW(look(session, {}), Error);
  EXPECT_THROW(look(session, std::vector<TokenId>(kPositions + 1, 1)), Error);
  const std::vector<TokenId> wrong = {1, 65};
  EXPECT_THROW(look(session, wrong), Error);
  EXPECT_TRUE(look(session, ids).has_value());  // the session can be used afterwards
}

TEST(Look, CountsTheBytesOfAStep) {
  Engine engine = walker_engine(kModels + "qwen3-qk-norm");  // 24 wide, 4 heads of 8, 2 kv heads
  Session session(engine, kPositions);
  const std::vector<TokenId> ids = {1, 2, 3};
  const Look found = look(session, ids).value();
  const auto bytes = [&](int layer, std::string_view name) {
    for (const Look::Step& step : found.steps) {
      if (step.layer == layer && step.name == name) return step.bytes;
    }
    return -1.0;
  };
  EXPECT_EQ(bytes(-1, "embedding"), 4 * 24);
  EXPECT_EQ(bytes(0, "q"), 4 * 32 * 24);
  EXPECT_EQ(bytes(0, "attn_out"), 4 * 2 * 3 * 16);  // keys and values of three positions
  EXPECT_EQ(bytes(-1, "logits"), 4 * 65 * 24);
}

TEST(Look, NeedsTheTextbook) {
  Engine engine = cpu_engine(kModels + "llama-mha");
  Session session(engine, kPositions);
  const std::vector<TokenId> ids = {1, 2, 3};
  EXPECT_THROW(look(session, ids), Error);
  std::vector<float> row(24), logits(65);
  EXPECT_EQ(error_of([&] { guess(engine, row, logits); }),
            "probe: expected the textbook backend, found one that fuses steps");
}

TEST(Guess, IsRefusedBeforeThereIsASequenceAndForWrongSizes) {
  for (const auto& open : {textbook_engine, walker_engine}) {
    Engine engine = open(kModels + "llama-mha", 1);
    const std::size_t width = engine.plan().buffer(residual_stream(engine.plan())).width;
    const std::size_t vocab_size = engine.plan().vocab_size;
    StepResults& results = engine.step_results();
    const Matrix<float> x(5, width);
    Matrix<float> logits(5, vocab_size);
    EXPECT_EQ(error_of([&] { results.score(x.view(), logits.view()); }),
              "score: expected a sequence to be made before, found none");
    const auto sequence = engine.make_sequence(8, 4);
    EXPECT_EQ(error_of([&] { results.score(x.view(), logits.view()); }),
              "score: expected 1 to 4 rows, found 5");
    EXPECT_EQ(error_of([&] { results.score(x.view().row_range(0, 0), logits.top_rows(0)); }),
              "score: expected 1 to 4 rows, found 0");
    EXPECT_EQ(error_of([&] { results.score(x.view().row_range(0, 2), logits.top_rows(1)); }),
              fmt::format("score: logits: expected [2, {0}], found [1, {0}]", vocab_size));
    const Matrix<float> wide(1, width + 1);
    EXPECT_EQ(error_of([&] { results.score(wide.view(), logits.top_rows(1)); }),
              fmt::format("score: x: expected [1, {}], found [1, {}]", width, width + 1));
    EXPECT_EQ(error_of([&] { results.score(x.view().row_range(0, 4), logits.top_rows(4)); }), "");
  }
}

}  // namespace
}  // namespace stagecraft
