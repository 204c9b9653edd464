#include "inspection/choices.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace stagecraft {
namespace {

std::vector<float> random_logits(std::mt19937& random, std::size_t n) {
  std::normal_distribution<float> normal(0.0f, 3.0f);
  std::vector<float> logits(n);
  for (float& logit : logits) logit = std::round(normal(random));  // with ties
  return logits;
}

float sum(const Choices& all, float Choice::*member) {
  double total = 0.0;
  for (const Choice& one : all.top) total += one.*member;
  return static_cast<float>(total);
}

// Tries many values of u, evenly over [0, 1): the share of draws in which sample() takes a token is
// its probability.
TEST(Choices, AreTheProbabilitiesWithWhichSampleChooses) {
  constexpr int kDraws = 20'000;
  std::mt19937 random(3);
  for (const SamplerOptions options :
       {SamplerOptions{}, SamplerOptions{0.7f, 5, 1.0f}, SamplerOptions{1.3f, 0, 0.8f},
        SamplerOptions{0.8f, 6, 0.9f}, SamplerOptions{0.0f, 4, 0.5f}, SamplerOptions{1, 3, 0.0f}}) {
    const std::vector<float> logits = random_logits(random, 30);
    const Choices all = choices(logits, logits, options, 30, -1);
    std::vector<int> drawn(30);
    std::vector<TokenProbability> scratch(30);
    for (int i = 0; i < kDraws; ++i) {
      const float u = (static_cast<float>(i) + 0.5f) / kDraws;
      ++drawn[static_cast<std::size_t>(sample(logits, options, u, scratch))];
    }
    ASSERT_EQ(all.top.size(), 30u);
    std::size_t possible = 0;
    for (const Choice& one : all.top) {
      const double share = drawn[static_cast<std::size_t>(one.token)] / double{kDraws};
      EXPECT_NEAR(one.after_top_p, share, 2.0 / kDraws) << one.token;  // one step of u at each end
      possible += one.after_top_p > 0.0f ? 1 : 0;
    }
    EXPECT_EQ(possible, all.kept_top_p);
  }
}

TEST(Choices, AtTemperatureZeroKeepOneAndListTheOthersByTheirLogits) {
  const std::vector<float> logits = {1.0f, 4.0f, 3.0f, 4.0f, 2.0f};
  const Choices all = choices(logits, logits, {.temperature = 0.0f, .top_k = 4}, 5, -1);
  EXPECT_EQ(all.kept_top_k, 1u);
  EXPECT_EQ(all.kept_top_p, 1u);
  std::vector<TokenId> order;
  for (const Choice& one : all.top) order.push_back(one.token);
  EXPECT_EQ(order, (std::vector<TokenId>{1, 3, 2, 4, 0}));
}

TEST(Choices, SumToOneAfterEachStep) {
  std::mt19937 random(4);
  const std::vector<float> logits = random_logits(random, 50);
  const Choices all = choices(logits, logits, {0.6f, 10, 0.9f}, 50, -1);
  EXPECT_EQ(all.kept_top_k, 10u);
  EXPECT_LT(all.kept_top_p, 10u);
  for (float Choice::*member : {&Choice::probability, &Choice::after_temperature,
                                &Choice::after_top_k, &Choice::after_top_p}) {
    EXPECT_NEAR(sum(all, member), 1.0f, 1e-5f);
  }
  EXPECT_EQ(all.top[0].rank, 0u);
  EXPECT_GE(all.top[0].probability, all.top[1].probability);
}

TEST(Choices, NameTheTokenThatIsAskedForWhateverItsRank) {
  std::mt19937 random(5);
  const std::vector<float> logits = random_logits(random, 50);
  const TokenId last = choices(logits, logits, {}, 50, -1).top.back().token;
  const Choices few = choices(logits, logits, {}, 3, last);
  ASSERT_EQ(few.top.size(), 4u);
  EXPECT_EQ(few.top.back().token, last);
  EXPECT_EQ(few.top.back().rank, 49u);
  EXPECT_EQ(choices(logits, logits, {}, 3, few.top[1].token).top.size(), 3u);
}

TEST(Choices, TakeTheProbabilityOfTheModelBeforeThePenalty) {
  const std::vector<float> logits = {2.0f, 1.0f}, changed = {0.0f, 1.0f};
  const Choices both = choices(logits, changed, {}, 2, -1);
  EXPECT_EQ(both.top[0].token, 1);
  EXPECT_NEAR(both.top[0].probability, 1.0f / (1.0f + std::exp(1.0f)), 1e-6f);
  EXPECT_NEAR(both.top[0].after_temperature, 1.0f / (1.0f + std::exp(-1.0f)), 1e-6f);
}

TEST(Choices, RefuseBrokenLogits) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& logits :
       {std::vector<float>{1.0f, NAN}, {kInfinity, 0.0f}, {-kInfinity, -kInfinity}}) {
    EXPECT_THROW(choices(logits, logits, {}, 2, -1), Error);
  }
}

}  // namespace
}  // namespace stagecraft
