#include "generation/chat_turn.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/engines.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

class ChatTurn : public testing::Test {
 protected:
  ChatTurn() { options_.generation.end_tokens = {2}; }

  // Answers, and counts the positions that the model computed.
  TextResult turn(Session& session, const std::vector<TokenId>& conversation) {
    fed_ = 0;
    session.engine().step_results().set_probe(
        [this](int, std::string_view name, MatrixView<const float> view) {
          if (name == "embedding") fed_ += view.rows();
        });
    Random random(1);
    return chat_turn(tokenizer_, session, conversation, options_, random,
                     [](std::string_view) { return true; });
  }

  std::vector<TokenId> ids(std::size_t count, TokenId first = 5) {
    std::vector<TokenId> tokens;
    for (std::size_t i = 0; i < count; ++i) tokens.push_back(first + static_cast<TokenId>(i));
    return tokens;
  }

  TinyChatModel files_;
  Engine model_ = walker_engine(files_.folder());
  Tokenizer tokenizer_ = Tokenizer::open(files_.folder());
  TextOptions options_;
  std::size_t fed_ = 0;
};

TEST_F(ChatTurn, ComputesOnlyWhatTheSessionDoesNotHold) {
  options_.generation.max_tokens = 1;  // then the answer itself is not fed
  Session session(model_, 256);
  EXPECT_EQ(turn(session, ids(100)).prompt_tokens, 100u);
  EXPECT_EQ(fed_, 100u);
  EXPECT_EQ(turn(session, ids(107)).prompt_tokens, 7u);
  EXPECT_EQ(fed_, 7u);
}

TEST_F(ChatTurn, KeepsTheAnswerItMade) {
  options_.generation.max_tokens = 8;
  options_.generation.end_tokens.clear();
  Session session(model_, 256);
  std::vector<TokenId> conversation = ids(20);
  const TextResult first = turn(session, conversation);
  ASSERT_EQ(first.tokens.size(), 8u);
  conversation.insert(conversation.end(), first.tokens.begin(), first.tokens.end());
  conversation.push_back(2);
  options_.generation.max_tokens = 1;
  turn(session, conversation);
  EXPECT_EQ(fed_, 2u);  // the last token of the answer, which was not fed before, and the 2
}

TEST_F(ChatTurn, ForgetsWhatDepartsFromTheConversation) {
  options_.generation.max_tokens = 1;
  Session session(model_, 256);
  turn(session, ids(50));
  std::vector<TokenId> other = ids(50);
  other[30] = 200;
  turn(session, other);
  EXPECT_EQ(fed_, 20u);
  EXPECT_EQ(std::vector<TokenId>(session.tokens().begin(), session.tokens().end()), other);

  Session fresh(model_, 256);
  EXPECT_EQ(turn(session, ids(40)).tokens, turn(fresh, ids(40)).tokens);
}

TEST_F(ChatTurn, ComputesTheLastTokenAgainForItsScores) {
  options_.generation.max_tokens = 6;
  Session session(model_, 256);
  const TextResult first = turn(session, ids(50));
  const TextResult again = turn(session, ids(50));
  EXPECT_EQ(again.prompt_tokens, 1u);
  EXPECT_EQ(again.tokens, first.tokens);
}

TEST_F(ChatTurn, CanBeStoppedWhileALongConversationIsComputed) {
  Session session(model_, 512);
  Random random(1);
  const std::vector<TokenId> conversation(400, 7);
  std::size_t calls = 0;
  const auto stop_at_third = [&](std::string_view text) {
    EXPECT_TRUE(text.empty());
    return ++calls < 3;
  };
  const TextResult result =
      chat_turn(tokenizer_, session, conversation, options_, random, stop_at_third);
  EXPECT_EQ(result.reason, StopReason::Stopped);
  EXPECT_TRUE(result.tokens.empty());
  EXPECT_EQ(result.prompt_tokens, session.tokens().size());
  EXPECT_LT(session.tokens().size(), 400u);

  Session fresh(model_, 512);
  EXPECT_EQ(turn(session, conversation).tokens, turn(fresh, conversation).tokens);
}

TEST_F(ChatTurn, RefusesAConversationThatIsEmptyOrTooLong) {
  Session session(model_, 64);
  turn(session, ids(10));
  const std::vector<TokenId> before(session.tokens().begin(), session.tokens().end());
  EXPECT_THROW(turn(session, {}), Error);
  EXPECT_THROW(turn(session, ids(65)), Error);
  EXPECT_EQ(std::vector<TokenId>(session.tokens().begin(), session.tokens().end()), before);
  EXPECT_NO_THROW(turn(session, ids(64)));
}

}  // namespace
}  // namespace stagecraft
