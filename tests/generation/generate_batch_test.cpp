#include "generation/generate_batch.h"

#include <gtest/gtest.h>

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
    result.reason = generate(session, options_, random, [&](TokenId token) {
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
        *engine_, context, prompt_, options_, randoms,
        [&](std::size_t which, std::span<const TokenId> tokens, StopReason reason) {
          results[which] = {{tokens.begin(), tokens.end()}, reason};
          ++calls;
        },
        [] { return true; });
    EXPECT_EQ(calls, n);
    return results;
  }

  TemporaryFolder folder_;
  std::optional<Engine> engine_;
  GenerationOptions options_;
  std::vector<TokenId> prompt_ = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8};
};

TEST_F(GenerateBatch, GivesEachTextWhatItsSeedGivesAlone) {
  for (const std::size_t context : {100u, 30u}) {  // the second is full before the tokens are made
    const std::vector<Ended> results = together(12, context);
    for (std::size_t i = 0; i < results.size(); ++i) {
      EXPECT_EQ(results[i], alone(100 + i, context)) << "text " << i << ", context " << context;
    }
  }
}

TEST_F(GenerateBatch, StopsAllWhenAsked) {
  std::vector<Random> randoms = {Random(1), Random(2), Random(3)};
  options_.end_tokens.clear();
  int asked = 0;
  std::size_t stopped = 0;
  generate_batch(
      *engine_, 100, prompt_, options_, randoms,
      [&](std::size_t, std::span<const TokenId> tokens, StopReason reason) {
        EXPECT_EQ(reason, StopReason::Stopped);
        EXPECT_EQ(tokens.size(), 5u);
        ++stopped;
      },
      [&] { return ++asked <= 5; });
  EXPECT_EQ(stopped, 3u);
}

}  // namespace
}  // namespace stagecraft
