#include "generation/sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

TokenId choose(const std::vector<float>& logits, const SamplerOptions& options, float u) {
  std::vector<TokenProbability> scratch(logits.size());
  return sample(logits, options, u, scratch);
}

// The part of [0, 1) in which each token is chosen, found by trying many u.
std::map<TokenId, double> shares(const std::vector<float>& logits, const SamplerOptions& options) {
  constexpr int kSteps = 20'000;
  std::map<TokenId, double> result;
  for (int i = 0; i < kSteps; ++i) {
    const float u = (static_cast<float>(i) + 0.5f) / kSteps;
    result[choose(logits, options, u)] += 1.0 / kSteps;
  }
  return result;
}

constexpr double kSweepStep = 1e-4;  // two steps of the sweep

TEST(Sample, TemperatureZeroTakesTheLargestWhateverURestricts) {
  const std::vector<float> logits = {0.5f, 3.0f, -1.0f, 3.0f};
  for (const float u : {0.0f, 0.5f, 0.999f}) {
    EXPECT_EQ(choose(logits, {.temperature = 0.0f, .top_k = 3, .top_p = 0.1f}, u), 1);
  }
}

TEST(Sample, EveryTokenGetsItsShareOfTheSoftmax) {
  const std::vector<float> logits = {1.0f, -0.5f, 2.0f, 0.25f};
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  const auto found = shares(logits, {});
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = std::exp(static_cast<double>(logits[i])) / sum;
    EXPECT_NEAR(found.at(static_cast<TokenId>(i)), expected, kSweepStep) << "token " << i;
  }
}

TEST(Sample, TemperatureDividesTheLogits) {
  const std::vector<float> logits = {1.0f, 0.0f};
  const auto cold = shares(logits, {.temperature = 0.5f});
  EXPECT_NEAR(cold.at(0), 1.0 / (1.0 + std::exp(-2.0)), kSweepStep);
  const auto hot = shares(logits, {.temperature = 2.0f});
  EXPECT_NEAR(hot.at(0), 1.0 / (1.0 + std::exp(-0.5)), kSweepStep);
}

TEST(Sample, TopKKeepsTheLikeliestAndSharesTheRestAmongThem) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  const auto found = shares(logits, {.top_k = 2});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(2), 1.0 / (1.0 + std::exp(-1.0)), kSweepStep);
  EXPECT_NEAR(found.at(1), std::exp(-1.0) / (1.0 + std::exp(-1.0)), kSweepStep);
}

TEST(Sample, TopPKeepsTheFewestThatReachPTheOneThatCrossesIncluded) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  const auto found = shares(logits, {.top_p = 0.7f});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_NEAR(found.at(0), 0.5 / 0.8, kSweepStep);
}

TEST(Sample, TopPKeepsNoMoreThanReachPExactly) {
  const std::vector<float> logits = {0.0f, 0.0f};  // each has the share 0.5
  EXPECT_EQ(shares(logits, {.top_p = 0.5f}).size(), 1u);
}

TEST(Sample, TopPCountsSharesAfterTopK) {
  // Token 0 has 0.4 / 0.7 = 0.57 of the sum of the two kept tokens: enough for p = 0.5. Of the sum
  // of all four it has too little.
  const std::vector<float> logits = {std::log(0.4f), std::log(0.3f), std::log(0.2f),
                                     std::log(0.1f)};
  EXPECT_EQ(shares(logits, {.top_p = 0.5f}).size(), 2u);
  EXPECT_EQ(shares(logits, {.top_k = 2, .top_p = 0.5f}).size(), 1u);
}

TEST(Sample, OfEqualTokensTheLowerIdCountsAsLikelier) {
  const std::vector<float> logits = {1.0f, 2.0f, 2.0f, 2.0f};
  const auto found = shares(logits, {.top_k = 2});
  EXPECT_EQ(found.count(1), 1u);
  EXPECT_EQ(found.count(2), 1u);
  EXPECT_EQ(found.count(3), 0u);
  EXPECT_EQ(choose(logits, {.top_p = 0.0f}, 0.5f), 1);
}

TEST(Sample, RanksALargeVocabularyAsSortingAllWould) {
  // 5,000 different logits in random order, so the ranking is extended several times.
  std::vector<float> logits(5000);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 2731) % 5000) / 5000.0f;
  }
  std::map<float, TokenId, std::greater<>> in_order;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    in_order[logits[i]] = static_cast<TokenId>(i);
  }
  double total = 0.0;
  for (const float logit : logits) total += std::exp(static_cast<double>(logit));
  double below = 0.0;
  std::size_t rank = 0;
  for (const auto& [logit, token] : in_order) {
    const double share = std::exp(static_cast<double>(logit)) / total;
    if (rank++ % 97 == 0) {
      const float middle = static_cast<float>(below + share / 2);
      EXPECT_EQ(choose(logits, {.top_p = 0.99999f}, middle), token) << "rank " << rank;
    }
    below += share;
  }
}

TEST(Sample, RefusesLogitsOfABrokenModel) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto refused = [](const std::vector<float>& logits, float temperature) {
    return error_of([&] { choose(logits, {.temperature = temperature}, 0.5f); });
  };
  const std::string where =
      " for token 1: the weights are broken, or the code that computes with them";
  EXPECT_EQ(refused({0.0f, nan}, 0.0f), "the model computed the logit nan" + where);
  EXPECT_EQ(refused({0.0f, inf}, 1.0f), "the model computed the logit inf" + where);
  EXPECT_EQ(refused({-inf, -inf}, 1.0f), "the model gives every token the probability 0");
  EXPECT_EQ(refused({}, 1.0f), "sample: expected at least one logit, found none");
  EXPECT_EQ(choose({-inf, 0.0f}, {}, 0.999f), 1);
}

}  // namespace
}  // namespace stagecraft
