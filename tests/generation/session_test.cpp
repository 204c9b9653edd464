#include "generation/session.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "model/description.h"
#include "tests/support/engines.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

TEST(DefaultContext, IsThatOfTheModelUpTo4096) {
  Plan plan;
  for (const auto& [of_model, expected] :
       {std::pair{9u, 9u}, {4096u, 4096u}, {4097u, 4096u}, {131'072u, 4096u}}) {
    plan.max_seq_len = of_model;
    EXPECT_EQ(default_context(plan), expected);
  }
}

TEST(Session, AfterARefusedTokenHoldsWhatItHeldBefore) {
  Engine engine = textbook_engine(kModels + "llama-mha");
  Session session(engine, 8), fresh(engine, 8);
  session.feed(std::vector<TokenId>{1, 2});
  EXPECT_THROW(session.feed(std::vector<TokenId>{3, 1'000'000}), Error);
  EXPECT_TRUE(std::ranges::equal(session.tokens(), std::vector<TokenId>{1, 2}));
  session.feed(std::vector<TokenId>{4});
  fresh.feed(std::vector<TokenId>{1, 2, 4});
  EXPECT_TRUE(std::ranges::equal(session.logits(), fresh.logits()));
}

}  // namespace
}  // namespace stagecraft
