#include "generation/generate_batch.h"

#include <gtest/gtest.h>

#include "generation/generate_text.h"
#include "generation/session.h"
#include "tests/support/engines.h"
#include "tests/support/random_model.h"

namespace stagecraft {
namespace {

struct Ended {
  std::vector<TokenId> tokens;
  StopReason reason = StopReason::Stopped;
  bool operator==(const Ended&) const = default;
};

class GenerateBatch : public testing::Test {
 protected:
  GenerateBatch() {
    write_random_model(folder_.path());
    engine_.emplace(cpu_engine(folder_.path(), 2));
    options_.max_tokens = 40;
    options_.sampler = {.temperature = 0.9f, .top_k = 40, .top_p = 0.95f};
    options_.repeat_penalty = 1.2f;
    for (TokenId id = 0; id < 20; ++id) options_.end_tokens.push_back(id * 25);  // some end early
  }

  Ended alone(std::uint64_t seed, std::size_t context) {
    Session session(*engine_, context);
    session.feed(prompt_);
    Random random(seed);
    Ended result;
    const TextOptions options{.generation = options_, .grammar = {}, .rules = rules_, .stops = {}};
    result.reason = generate_tokens(session, options, random, [&](TokenId token) {
      result.tokens.push_back(token);
      return true;
    });
    return result;
  }

  std::vector<Ended> together(std::size_t n, std::size_t context) {
    std::vector<Random> randoms;
    for (std::size_t i = 0; i < n; ++i) randoms.emplace_back(100 + i);
    std::vector<Ended> results(n);
    std::size_t calls = 0;
    generate_batch(
        *engine_, context, prompt_, options_, rules_, randoms,
        [&](std::size_t which, TokenId token) {
          results[which].tokens.push_back(token);
          return true;
        },
        [&](std::size_t which, StopReason reason) {
          results[which].reason = reason;
          ++calls;
        });
    EXPECT_EQ(calls, n);
    return results;
  }

  TemporaryFolder folder_;
  std::optional<Engine> engine_;
  GenerationOptions options_;
  LogitRules rules_;
  std::vector<TokenId> prompt_ = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};
};

TEST_F(GenerateBatch, GivesEachTextWhatItsSeedGivesAlone) {
  for (const std::size_t context : {100u, 30u}) {  // 30: full before all tokens are generated
    const std::vector<Ended> results = together(12, context);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i], alone(100 + i, context)) << "text " << i << ", context " << context;
    }
  }
}

TEST_F(GenerateBatch, GivesEachTextItsRules) {
  const std::vector<Ended> plain = together(4, 100);
  rules_ = {{{7, 3.0f}}, 0.5f, 0.25f, 0.05f};
  const std::vector<Ended> results = together(4, 100);
  for (std::size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i], alone(100 + i, 100)) << "text " << i;
    EXPECT_NE(results[i], plain[i]) << "text " << i;
  }
}

TEST_F(GenerateBatch, StopsOneTextWhenAskedAndTheOthersGoOn) {
  std::vector<Random> randoms = {Random(1), Random(2), Random(3)};
  options_.end_tokens.clear();
  std::vector<std::size_t> made(randoms.size());
  std::vector<StopReason> reasons(randoms.size());
  generate_batch(
      *engine_, 100, prompt_, options_, rules_, randoms,
      [&](std::size_t which, TokenId) { return ++made[which] < 5 || which != 1; },
      [&](std::size_t which, StopReason reason) { reasons[which] = reason; });
  EXPECT_EQ(made, (std::vector<std::size_t>{40, 5, 40}));
  EXPECT_EQ(reasons,
            (std::vector{StopReason::MaxTokens, StopReason::Stopped, StopReason::MaxTokens}));
}

TEST_F(GenerateBatch, StopsBetweenPassesOfTheirPromptWhenAsked) {
  std::vector<Random> randoms = {Random(1), Random(2)};
  for (int i = 0; i < 3000; ++i) prompt_.push_back(static_cast<TokenId>(i % 500));  // some passes
  std::size_t passes = 0, done = 0;
  generate_batch(
      *engine_, prompt_.size() + 10, prompt_, options_, rules_, randoms,
      [](std::size_t, TokenId) {
        ADD_FAILURE() << "a token after the end";
        return true;
      },
      [&](std::size_t, StopReason reason) {
        EXPECT_EQ(reason, StopReason::Stopped);
        ++done;
      },
      [&] { return ++passes < 2; });
  EXPECT_EQ(passes, 2u);
  EXPECT_EQ(done, 2u);
}

TEST_F(GenerateBatch, RefusesMoreTextsThanTheMachineHasMemoryFor) {
  std::vector<Random> randoms(512, Random(1));
  const std::function<bool(std::size_t, TokenId)> on_token;
  EXPECT_THROW(generate_batch(*engine_, std::size_t{1} << 40, prompt_, options_, rules_, randoms,
                              on_token, [](std::size_t, StopReason) {}),
               Error);
}

}  // namespace
}  // namespace stagecraft
