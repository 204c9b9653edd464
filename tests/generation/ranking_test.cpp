#include "generation/ranking.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stagecraft {
namespace {

TEST(Ranking, OfEqualTokensHasTheLowerIdFirst) {
  const std::vector<float> values = {0.1f, 0.3f, 0.2f, 0.3f, 0.1f};
  std::vector<TokenId> ids;
  for (const RankedToken& one : top_tokens(values, 9)) ids.push_back(one.token);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 3, 2, 0, 4}));
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    EXPECT_EQ(rank_of(values, ids[rank]), rank);
  }
  EXPECT_EQ(top_tokens(values, 2).size(), 2u);
}

TEST(Ranking, SumsExponentialsOfAnySize) {
  for (const float offset : {0.0f, 1000.0f, -1000.0f}) {
    const std::vector<float> values = {offset, offset + 1.0f, offset - 2.0f};
    EXPECT_NEAR(log_sum_exp(values), offset + std::log(1.0 + std::exp(1.0) + std::exp(-2.0)),
                1e-12);
  }
}

}  // namespace
}  // namespace stagecraft
