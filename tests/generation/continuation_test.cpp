#include "generation/continuation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/engines.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

// Makes the steps of one text from given logits.
class ContinuationTest : public testing::Test {
 protected:
  ContinuationTest() { options_.sampler.temperature = 0.0f; }

  Continuation text(std::vector<TokenId> prompt, std::size_t context,
                    const TokenGrammar* grammar = nullptr) const {
    return Continuation(std::move(prompt), options_, Random(1), context, grammar, rules_);
  }
  static Continuation::Step step(Continuation& text, std::vector<float> logits) {
    std::vector<TokenProbability> scratch(logits.size());
    return text.next(logits, scratch);
  }

  GenerationOptions options_;
  LogitRules rules_;
};

TEST_F(ContinuationTest, EndsBeforeItsFirstTokenWhereNoneIsWanted) {
  options_.max_tokens = 0;
  Continuation none = text({0}, 10);
  const Continuation::Step end = step(none, {1.0f, 2.0f});
  EXPECT_EQ(end.token, std::nullopt);
  EXPECT_EQ(end.end, StopReason::MaxTokens);
}

TEST_F(ContinuationTest, EndsWithTheTokenThatNoLongerFits) {
  options_.max_tokens = 10;
  Continuation full = text({0, 0}, 3);
  EXPECT_EQ(step(full, {1.0f, 2.0f}).end, std::nullopt);
  const Continuation::Step last = step(full, {1.0f, 2.0f});
  EXPECT_EQ(last.token, 1);
  EXPECT_EQ(last.end, StopReason::ContextFull);
}

TEST_F(ContinuationTest, PenalizesOnlyTheLastTokens) {
  options_.max_tokens = 10;
  options_.repeat_penalty = 4.0f;
  options_.repeat_last_n = 1;
  const std::vector<float> logits = {3.0f, 2.0f, 1.0f};
  Continuation recent = text({0, 1}, 10);
  EXPECT_EQ(step(recent, logits).token, 0);  // its place in the text is too long ago
  EXPECT_EQ(step(recent, logits).token, 1);  // now 0 is the last token
}

TEST_F(ContinuationTest, CountsTheNewTextForItsPenalties) {
  rules_.presence_penalty = 1.0f;
  rules_.frequency_penalty = 0.5f;
  Continuation penalized = text({0, 0, 0}, 10);  // the prompt does not count
  EXPECT_FALSE(penalized.is_greedy());
  std::vector<TokenId> made;
  for (int i = 0; i < 4; ++i) made.push_back(step(penalized, {4.0f, 2.4f, 0.9f}).token.value());
  // The logit of token 0: 4, 2.5, 2, then 2 again, because it was not chosen. Of token 1: 2.4, 0.9.
  EXPECT_EQ(made, (std::vector<TokenId>{0, 0, 1, 0}));
}

TEST_F(ContinuationTest, AddsTheBias) {
  rules_.bias = {{2, 5.0f}, {0, -100.0f}};
  Continuation biased = text({0}, 10);
  EXPECT_EQ(step(biased, {4.0f, 2.5f, 1.0f}).token, 2);
}

TEST_F(ContinuationTest, MinPLeavesTheTokensThatAreLikelyEnoughAfterTemperature) {
  static constexpr float kNone = -std::numeric_limits<float>::infinity();
  std::vector<float> logits = {std::log(0.1f), std::log(0.5f), std::log(0.4f)};
  const auto kept = [&](float temperature, float min_p) {
    std::vector<float> changed = logits;
    forbid_unlikely(changed, temperature, min_p);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      EXPECT_TRUE(changed[i] == logits[i] || changed[i] == kNone);
    }
    return std::ssize(changed) - std::ranges::count(changed, kNone);
  };
  EXPECT_EQ(kept(1.0f, 0.0f), 3);
  EXPECT_EQ(kept(1.0f, 0.19f), 3);  // 0.1 / 0.5 is 0.2
  EXPECT_EQ(kept(1.0f, 0.21f), 2);
  EXPECT_EQ(kept(2.0f, 0.21f), 3);  // twice the temperature: 0.2 becomes 0.447
  EXPECT_EQ(kept(0.5f, 0.06f), 2);  // half: 0.04
  EXPECT_EQ(kept(1.0f, 1.0f), 1);
  EXPECT_EQ(kept(0.0f, 0.5f), 1);
}

TEST_F(ContinuationTest, EndsOnlyWhereItsGrammarAllowsTheEnd) {
  const TinyChatModel folder;
  const Tokenizer tokenizer = Tokenizer::open(folder.folder());
  const TokenGrammar grammar = TokenGrammars(tokenizer).parse("root ::= \"x\"+", "test");
  const TokenId end = tokenizer.id_of("<|im_end|>").value(), x = tokenizer.id_of("x").value();
  options_.max_tokens = 10;
  options_.end_tokens = {end};
  std::vector<float> logits(tokenizer.vocab_size(), 1.0f);
  logits[static_cast<std::size_t>(end)] = 3.0f;  // the likeliest, but the text is not complete
  Continuation guided = text({x}, 10, &grammar);
  const Continuation::Step first = step(guided, logits);
  EXPECT_EQ(first.token, x);
  EXPECT_EQ(first.end, std::nullopt);
  const Continuation::Step second = step(guided, logits);
  EXPECT_EQ(second.token, std::nullopt);
  EXPECT_EQ(second.end, StopReason::EndToken);
}

// A token may be an end and a text of the grammar: with stop_token_ids of a request.
TEST_F(ContinuationTest, EndsAtATokenThatItsGrammarAllowsAsText) {
  const TinyChatModel folder;
  const Tokenizer tokenizer = Tokenizer::open(folder.folder());
  const TokenGrammar grammar = TokenGrammars(tokenizer).parse("root ::= \"x\"", "test");
  const TokenId x = tokenizer.id_of("x").value();
  options_.max_tokens = 10;
  options_.end_tokens = {x};
  std::vector<float> logits(tokenizer.vocab_size(), 1.0f);
  Continuation guided = text({x}, 10, &grammar);
  const Continuation::Step first = step(guided, logits);
  EXPECT_EQ(first.token, std::nullopt);
  EXPECT_EQ(first.end, StopReason::EndToken);
}

TEST_F(ContinuationTest, NextTokenChoosesNoneIfThePromptWasInterrupted) {
  const TinyChatModel folder({.endless = true});
  Engine engine = textbook_engine(folder.folder());
  Session session(engine, 512);
  Continuation one = text(std::vector<TokenId>(200, 10), session.context());
  std::vector<TokenProbability> scratch(session.logits().size());
  const Continuation::Step stopped = next_token(session, one, scratch, [] { return false; });
  EXPECT_EQ(stopped.token, std::nullopt);
  EXPECT_EQ(stopped.end, StopReason::Stopped);
  EXPECT_LT(session.tokens().size(), 200u);
  EXPECT_NE(next_token(session, one, scratch).token, std::nullopt);  // feeds the rest
  EXPECT_EQ(session.tokens().size(), 200u);
}

}  // namespace
}  // namespace stagecraft
