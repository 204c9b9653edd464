#include "generation/repeat_penalty.h"

#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(PenalizeRepeats, DividesPositiveAndMultipliesNegativeLogitsOnce) {
  std::vector<float> logits = {2.0f, -2.0f, 1.0f, 0.0f};
  penalize_repeats(logits, std::vector<TokenId>{0, 1, 0, 1, 0}, 2.0f);
  EXPECT_EQ(logits, (std::vector<float>{1.0f, -4.0f, 1.0f, 0.0f}));
}

TEST(PenalizeRepeats, SkipsIdsOutsideTheVocabularyAndAPenaltyOfOne) {
  std::vector<float> memory = {2.0f, -2.0f, 2.0f};
  const std::span<float> logits = std::span(memory).first(2);
  penalize_repeats(logits, std::vector<TokenId>{-1, 2, 1'000'000}, 2.0f);
  penalize_repeats(logits, std::vector<TokenId>{0, 1}, 1.0f);
  EXPECT_EQ(memory, (std::vector<float>{2.0f, -2.0f, 2.0f}));
}

}  // namespace
}  // namespace stagecraft
