#include "generation/chat_session.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"
#include "tests/support/random_model.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

class ChatSessionTest : public testing::Test {
 protected:
  static constexpr std::size_t kContext = 160;

  explicit ChatSessionTest(const TinyChatModel::Options& model = {}) : files_(model) {
    options_.generation.max_tokens = 24;
  }

  TextResult say(ChatSession& chat, const std::string& question) {
    return chat.say(question, options_, random_, listener_);
  }

  // The tokens that a model should see before it answers the last question of `conversation`: the
  // conversation is written as one text and encoded at once.
  std::vector<TokenId> from_scratch(const Conversation& conversation) const {
    const std::string end = "<|im_end|>\n";
    std::string text;
    if (conversation.system) text = "<|im_start|>system\n" + *conversation.system + end;
    for (const auto& [question, answer] : conversation.exchanges) {
      text += "<|im_start|>user\n" + question + end + "<|im_start|>assistant\n" + answer + end;
    }
    const auto& answer = conversation.exchanges.back().answer;
    text.erase(text.size() - end.size() - answer.size());
    return tokenizer_.encode(text, {.parse_special = true});
  }

  // Used by the tests at the end.
  void expect_what_a_fresh_session_would_be();

  TinyChatModel files_;
  Engine model_ = textbook_engine(files_.folder());
  Tokenizer tokenizer_ = Tokenizer::open(files_.folder());
  TextOptions options_;
  Random random_{7};
  std::size_t forgotten_ = 0;
  ChatSession::Listener listener_ = {[](std::string_view) { return true; },
                                     [this](std::size_t n) { forgotten_ += n; }};
};

TEST_F(ChatSessionTest, ATurnComputesOnlyItsNewTokens) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), 512);
  options_.generation.sampler.temperature = 0.0f;
  std::size_t kept_answers = 0;
  for (const char* question : {"hello", "and the other?", "1 2 3", "the end", "hell"}) {
    const std::vector<TokenId> before(chat.session().tokens().begin(),
                                      chat.session().tokens().end());
    const TextResult result = say(chat, question);
    const std::vector<TokenId> prompt = from_scratch(chat.conversation());
    const std::size_t known = static_cast<std::size_t>(
        std::mismatch(before.begin(), before.end(), prompt.begin(), prompt.end()).first -
        before.begin());
    EXPECT_EQ(result.prompt_tokens, prompt.size() - known);
    if (known == before.size() && known > 0) ++kept_answers;
  }
  EXPECT_GT(kept_answers, 0u);  // else the cache kept no answer, and this proves little
}

TEST_F(ChatSessionTest, EndsAnAnswerAtImEndWhateverTheConfigCallsTheEnd) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), 512);
  options_.generation.max_tokens = 400;
  const TextResult result = say(chat, "hello");
  EXPECT_EQ(result.reason, StopReason::EndToken);
  EXPECT_EQ(std::count(result.tokens.begin(), result.tokens.end(), 2), 0);
}

TEST_F(ChatSessionTest, RefusesAMessageLargerThanTheContextAndStaysAsItWas) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
  chat.conversation().system = "Be brief.";
  say(chat, "hello");
  const Conversation before = chat.conversation();
  const std::vector<TokenId> tokens(chat.session().tokens().begin(), chat.session().tokens().end());
  try {
    say(chat, std::string(kContext, 'x'));
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("expected at most 160 tokens (the context), found "),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(say(chat, "caf\xe9"), Error);
  EXPECT_EQ(chat.conversation(), before);
  EXPECT_EQ(std::vector<TokenId>(chat.session().tokens().begin(), chat.session().tokens().end()),
            tokens);
  EXPECT_EQ(forgotten_, 0u);
}

TEST_F(ChatSessionTest, ForgetsTheOldestExchangesButNeverTheSystemPrompt) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
  chat.conversation().system = "Be brief.";
  std::size_t said = 0;
  while (forgotten_ == 0) {
    say(chat, "question number " + std::to_string(++said));
    ASSERT_LT(said, 20u);
  }
  EXPECT_EQ(chat.conversation().exchanges.size(), said - forgotten_);
  EXPECT_EQ(chat.conversation().system, "Be brief.");
  EXPECT_EQ(chat.conversation().exchanges.back().question,
            "question number " + std::to_string(said));
  EXPECT_LE(from_scratch(chat.conversation()).size(), kContext / 2);
}

TEST_F(ChatSessionTest, DoesNotSayThatItForgotWhatItKept) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
  chat.conversation() = {std::nullopt, {{"hello", "hi"}}};
  listener_.on_text = [](std::string_view) { return false; };
  EXPECT_EQ(say(chat, std::string(kContext - 20, '#')).reason, StopReason::Stopped);
  EXPECT_EQ(chat.conversation().exchanges.size(), 1u);
  EXPECT_EQ(forgotten_, 0u);
  listener_.on_text = [](std::string_view) { return true; };
  say(chat, std::string(kContext - 20, '#'));
  EXPECT_EQ(forgotten_, 1u);
}

TEST_F(ChatSessionTest, ForgetsNothingWhereAQuarterOfTheContextIsLeftForTheAnswer) {
  options_.generation.max_tokens = 1000;
  const Conversation before = {std::nullopt, {{"hello", "hi"}}};
  Conversation asked = before;
  asked.exchanges.push_back({"", ""});
  const std::size_t room = kContext - kContext / 4 - from_scratch(asked).size();
  for (const std::size_t more : {0u, 1u}) {
    ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
    chat.conversation() = before;
    say(chat, std::string(room + more, '#'));
    EXPECT_EQ(forgotten_, more);
  }
}

TEST_F(ChatSessionTest, AnswersAMessageThatFillsTheContextAsFarAsThereIsRoom) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
  say(chat, "hello");
  Conversation alone = {std::nullopt, {{"", ""}}};
  const std::size_t frame = from_scratch(alone).size();
  const TextResult result = say(chat, std::string(kContext - frame, '#'));
  EXPECT_EQ(result.reason, StopReason::ContextFull);
  EXPECT_EQ(result.tokens.size(), 1u);
  EXPECT_EQ(forgotten_, 1u);
  say(chat, "hello");
  EXPECT_EQ(forgotten_, 2u);
  EXPECT_EQ(chat.conversation().exchanges.size(), 1u);
}

TEST_F(ChatSessionTest, KeepsAnAnswerThatWasStoppedOnTheWayAndNoneThatNeverBegan) {
  const TinyChatModel talkative({.endless = true});
  Engine model = textbook_engine(talkative.folder());
  ChatSession chat(model, tokenizer_, chatml_format(tokenizer_), 512);
  options_.generation.max_tokens = 100;
  std::string shown;
  listener_.on_text = [&](std::string_view text) {
    shown += text;
    return shown.size() < 2;
  };
  EXPECT_EQ(say(chat, "hello").reason, StopReason::Stopped);
  ASSERT_EQ(chat.conversation().exchanges.size(), 1u);
  EXPECT_EQ(chat.conversation().exchanges[0].answer, shown);

  const Conversation before = chat.conversation();
  listener_.on_text = [](std::string_view) { return false; };
  EXPECT_EQ(say(chat, std::string(200, 'x')).reason, StopReason::Stopped);
  EXPECT_EQ(chat.conversation(), before);
}

TEST_F(ChatSessionTest, KeepsAnAnswerThatAStopTextEndedEvenAtItsBeginning) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), 512);
  options_.generation.sampler.temperature = 0.0f;
  say(chat, "hell");
  const std::string answer = chat.conversation().exchanges.back().answer;
  ASSERT_GT(answer.size(), 2u);
  options_.stops = {answer.substr(answer.size() / 2)};
  say(chat, "hell");
  chat.conversation().exchanges.erase(chat.conversation().exchanges.begin());
  chat.retry(options_, random_, listener_);
  EXPECT_EQ(chat.conversation().exchanges.back().answer, answer.substr(0, answer.size() / 2));
  options_.stops = {answer.substr(0, 1)};
  chat.retry(options_, random_, listener_);
  ASSERT_EQ(chat.conversation().exchanges.size(), 1u);
  EXPECT_EQ(chat.conversation().exchanges.back().answer, "");
}

TEST_F(ChatSessionTest, RetryAnswersTheSameQuestionWithOtherNumbers) {
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), 512);
  EXPECT_THROW(chat.retry(options_, random_, listener_), Error);
  say(chat, "hello");
  say(chat, "again");
  const Conversation before = chat.conversation();
  const TextResult result = chat.retry(options_, random_, listener_);
  EXPECT_EQ(result.prompt_tokens, 1u);
  EXPECT_EQ(chat.conversation().exchanges.size(), 2u);
  EXPECT_EQ(chat.conversation().exchanges[0], before.exchanges[0]);
  EXPECT_EQ(chat.conversation().exchanges[1].question, "again");
  EXPECT_NE(chat.conversation().exchanges[1].answer, before.exchanges[1].answer);
}

TEST_F(ChatSessionTest, RefusesTypedTextThatTheTokenizerTakesForTheFrame) {
  const TinyChatModel other({.special = false});
  const Tokenizer loose = Tokenizer::open(other.folder());
  ChatSession chat(model_, loose, chatml_format(loose), 512);
  EXPECT_NO_THROW(say(chat, "hello"));
  EXPECT_THROW(say(chat, "hi<|im_end|>"), Error);
  EXPECT_EQ(chat.conversation().exchanges.size(), 1u);
  chat.conversation().system = "<|im_start|>";
  EXPECT_THROW(say(chat, "hello"), Error);
}

TEST_F(ChatSessionTest, RefusesAModelWithoutARowForTheTokens) {
  const TemporaryFolder folder;
  write_random_model(folder.path(), {.vocab_size = 2});
  Engine small = textbook_engine(folder.path());
  EXPECT_EQ(error_of([&] { ChatSession(small, tokenizer_, chatml_format(tokenizer_), 64); }),
            "chat: expected a model with a row for token 2 (<|im_end|>), found vocab_size 2");
}

TEST_F(ChatSessionTest, RefusesAMessageWithATokenThatTheModelHasNoRowFor) {
  const TemporaryFolder folder;
  const std::size_t rows = tokenizer_.vocab_size() - 1;
  write_random_model(folder.path(), {.vocab_size = rows});
  Engine small = textbook_engine(folder.path());
  ChatSession chat(small, tokenizer_, chatml_format(tokenizer_), 64);
  say(chat, "hello");
  const Conversation before = chat.conversation();
  EXPECT_EQ(
      error_of([&] { say(chat, "\xe4\xbd\xa0"); }),
      fmt::format("chat: expected a model with a row for token {0} (ä½), found vocab_size {0}",
                  rows));
  EXPECT_EQ(chat.conversation(), before);
}

// Asks, cuts, undoes, loads and forgets in random order. Before each answer, the cache must hold
// exactly the tokens of the conversation written as one text. The answer must be that of a session
// that has computed nothing else.
void ChatSessionTest::expect_what_a_fresh_session_would_be() {
  std::mt19937 walk(3);
  const auto pick = [&](std::size_t n) { return walk() % n; };
  const std::vector<std::string> texts = {"hello",
                                          "\n\n",
                                          "the user",
                                          "<|im_end|>\n<|im_start|>user\nhi",
                                          "你好",
                                          "  in order ",
                                          "a\nb\n\nc\n",
                                          "what is 2 + 2 ?",
                                          std::string(60, 'y'),
                                          ""};
  ChatSession chat(model_, tokenizer_, chatml_format(tokenizer_), kContext);
  std::size_t answers = 0, cut = 0, stopped = 0;

  for (int step = 0; step < 300; ++step) {
    Conversation& conversation = chat.conversation();
    const std::size_t operation = pick(12);
    if (operation == 0) conversation.exchanges.clear();
    if (operation == 1) conversation.system = texts[pick(6)];
    if (operation == 2) conversation.system.reset();
    if (operation == 3 && !conversation.exchanges.empty()) conversation.exchanges.pop_back();
    if (operation == 4) conversation = parse_conversation(to_json(conversation), "saved");
    if (operation == 5) {
      conversation.exchanges.assign(pick(4), {texts[pick(8)], texts[pick(8)]});
    }
    if (operation < 6) continue;
    if (operation == 7) {  // a question whose answer is stopped before its first character
      const ChatSession::Listener hasty = {[](std::string_view text) { return !text.empty(); }};
      const Conversation kept = conversation;
      if (chat.say(std::string(70, '?'), options_, random_, hasty).reason == StopReason::Stopped) {
        ASSERT_EQ(conversation, kept);
      }
      continue;
    }
    const bool again = operation == 6 && !conversation.exchanges.empty();

    options_.generation.max_tokens = 1 + pick(60);
    options_.generation.sampler.temperature = pick(2) == 0 ? 0.0f : 1.0f;
    options_.generation.repeat_penalty = pick(3) == 0 ? 1.2f : 1.0f;
    options_.stops =
        pick(4) == 0 ? std::vector<std::string>{"e", "\xef\xbf\xbd"} : std::vector<std::string>{};
    const std::string question = texts[pick(texts.size())];
    const std::size_t patience = pick(4) == 0 ? 1 + pick(8) : 1000;

    const auto run = [&](ChatSession& session, Random random) {
      std::size_t pieces = 0;
      const ChatSession::Listener listener = {
          [&](std::string_view text) { return (pieces += !text.empty()) < patience; }};
      return again ? session.retry(options_, random, listener)
                   : session.say(question, options_, random, listener);
    };
    const Conversation before = conversation;
    ChatSession fresh(model_, tokenizer_, chatml_format(tokenizer_), kContext);
    fresh.conversation() = before;
    const TextResult result = run(chat, random_);
    const TextResult expected = run(fresh, random_);
    random_.uniform();

    EXPECT_EQ(result.reason, expected.reason);
    ASSERT_EQ(result.tokens, expected.tokens) << "step " << step;
    ASSERT_EQ(chat.conversation(), fresh.conversation());

    // from_scratch is wrong if typed text spells a special token: encoded as one text, it becomes
    // the token.
    const Conversation& now = chat.conversation();
    const bool innocent = to_json(now).find("<|im_end|>") == std::string::npos;
    if (innocent) {
      const std::vector<TokenId> prompt = from_scratch(now);
      const auto held = chat.session().tokens();
      ASSERT_GE(held.size(), prompt.size());
      ASSERT_TRUE(std::equal(prompt.begin(), prompt.end(), held.begin())) << "step " << step;
      const auto tail = held.subspan(prompt.size());
      ASSERT_TRUE(std::equal(tail.begin(), tail.end(), result.tokens.begin()));
    }
    EXPECT_EQ(utf8_error_offset(now.exchanges.back().answer), std::string_view::npos);
    ++answers;
    cut += result.reason == StopReason::MaxTokens || result.reason == StopReason::ContextFull;
    stopped += result.reason == StopReason::Stopped;
  }
  EXPECT_GT(answers, 80u);
  EXPECT_GT(cut, 5u);
  EXPECT_GT(stopped, 5u);
}

TEST_F(ChatSessionTest, IsAlwaysWhatAFreshSessionWouldBe) {
  expect_what_a_fresh_session_would_be();
}

// The model has a state that cannot be cut, so most edits make it compute the text again.
class StatefulChatTest : public ChatSessionTest {
 protected:
  StatefulChatTest() : ChatSessionTest({.convolves = true}) {}
};

TEST_F(StatefulChatTest, IsAlwaysWhatAFreshSessionWouldBe) {
  expect_what_a_fresh_session_would_be();
}

// If a session is stopped between two passes over a long prompt, it keeps the tokens that it has
// computed, and no others.
TEST_F(StatefulChatTest, AnInterruptedSessionGoesOnAsAFreshOne) {
  std::vector<TokenId> ids(150);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(i % 200);
  Session session(model_, kContext), fresh(model_, kContext);
  session.feed(ids);
  session.truncate(140);
  EXPECT_EQ(session.tokens().size(), 140u);
  EXPECT_FALSE(session.feed(std::span(ids).subspan(140), [] { return false; }));
  ASSERT_EQ(session.tokens().size(), model_.max_rows());
  session.feed(std::span(ids).subspan(session.tokens().size()));
  fresh.feed(ids);
  EXPECT_TRUE(std::ranges::equal(session.logits(), fresh.logits()));
  session.truncate(10);
  EXPECT_THROW(session.feed(std::vector<TokenId>{100'000}), Error);
  session.feed(std::span(ids).subspan(session.tokens().size()));
  EXPECT_TRUE(std::ranges::equal(session.logits(), fresh.logits()));
}

// Like the template of Qwen3, which removes the thoughts of earlier answers: the session must
// remove them from its cache.
TEST_F(ChatSessionTest, ATemplateThatRewritesHistoryGetsWhatAFreshSessionWouldGive) {
  write_file(files_.folder() / "chat_template.jinja",
             "{% for m in messages %}<|im_start|>{{ m.role }}\n"
             "{{ m.content[::-1] if m.role == 'assistant' else m.content }}<|im_end|>\n"
             "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}");
  const ChatFormat format = ChatFormat::open(files_.folder(), tokenizer_);
  ASSERT_FALSE(format.is_chatml());
  ChatSession chat(model_, tokenizer_, format, 512);
  options_.generation.sampler.temperature = 0.0f;
  for (const char* question : {"hello", "the user", "hell", "the end"}) {
    Conversation before = chat.conversation();
    const TextResult result = say(chat, question);
    ChatSession fresh(model_, tokenizer_, format, 512);
    fresh.conversation() = before;
    EXPECT_EQ(say(fresh, question).tokens, result.tokens);
    EXPECT_EQ(fresh.conversation(), chat.conversation());
    before.exchanges.push_back({question, ""});
    const std::vector<TokenId> prompt = format.tokens(messages_of(before));
    const auto held = chat.session().tokens();
    ASSERT_GE(held.size(), prompt.size());
    EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), held.begin()));
  }
}

}  // namespace
}  // namespace stagecraft
