#include "generation/ranking.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Ranking, OfEqualTokensHasTheLowerIdFirst) {
  const std::vector<float> values = {0.1f, 0.3f, 0.2f, 0.3f, 0.1f};
  std::vector<TokenId> ids;
  for (const TokenProbability& one : top_tokens(values, 9)) ids.push_back(one.token);
  EXPECT_EQ(ids, (std::vector<TokenId>{1, 3, 2, 0, 4}));
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    EXPECT_EQ(rank_of(values, ids[rank]), rank);
  }
  EXPECT_EQ(top_tokens(values, 2).size(), 2u);
}

}  // namespace
}  // namespace stagecraft
