#include "generation/session.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/engines.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

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

// The buffers of an engine grow with its longest context.
TEST(Session, MayHaveALongerContextThanTheOneBefore) {
  const std::vector<TokenId> ids(200, 5);
  for (const auto& open : {textbook_engine, walker_engine}) {
    Engine engine = open(kModels + "llama-mha", 1), fresh = open(kModels + "llama-mha", 1);
    const Session before(engine, 100);
    Session longer(engine, 200), alone(fresh, 200);
    longer.feed(ids);
    alone.feed(ids);
    EXPECT_TRUE(std::ranges::equal(longer.logits(), alone.logits()));
  }
}

}  // namespace
}  // namespace stagecraft
