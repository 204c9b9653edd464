// The gate of stage 8.2: a turn that reuses the KV cache.
#include "base/error.h"
#include "course/judge/messages.h"
#include "generation/chat_turn.h"
#include "tests/gates/chat_questions.h"
#include "tests/support/engines.h"
#include "text/chat_template.h"

namespace stagecraft::stages {
namespace {

// A conversation as it grows: the messages, and its tokens up to the opening of the answer.
class Talk {
 public:
  explicit Talk(Inputs& inputs) : inputs_(inputs) {}

  void ask(std::size_t n_words = 4) { messages_.push_back({"user", words(inputs_, n_words)}); }
  void answer(const std::string& text) { messages_.push_back({"assistant", text}); }
  void take_back(std::size_t n_messages) { messages_.resize(messages_.size() - n_messages); }

  std::vector<TokenId> tokens() const {
    std::vector<TokenId> all;
    const auto append = [&all](const std::vector<TokenId>& more) {
      all.insert(all.end(), more.begin(), more.end());
    };
    for (const Message& message : messages_) append(message_tokens(tokenizer(), message));
    append(answer_opening(tokenizer()));
    return all;
  }

  static const Tokenizer& tokenizer() {
    static const Tokenizer opened = Tokenizer::open(usual());
    return opened;
  }

 private:
  Inputs& inputs_;
  std::vector<Message> messages_;
};

struct Plan {
  std::size_t context = 400;
  std::size_t max_tokens = 14;
  std::size_t stopped_turn = 0;  // in this turn, on_text says false ...
  std::size_t stop_after = 0;    // ... at this call
  bool refusable = false;
  bool kept_cache = true;  // the tokens that the cache saves are judged, too
};

// Describes what is wrong with one output of a turn.
std::string tell_turn(const std::string& turn, const std::string& output,
                      const std::vector<double>& right, const std::vector<float>& got,
                      const Spell& spell) {
  const auto text = [](const auto& bytes) { return quoted(text_of_bytes(bytes)); };
  if (output == "cache") return diagnose_tokens(say("turn_cache", turn), right, got, spell);
  if (output == "tokens") return diagnose_tokens(say("turn_tokens", turn), right, got, spell);
  if (output == "text") return say("turn_text", turn, text(right), text(got));
  if (got.size() != 1) return {};
  if (output == "Error") return say(got[0] == 0.0f ? "turn_not_refused" : "turn_refused", turn);
  if (output == "computed") return say("turn_computed", turn, right[0], got[0]);
  if (output == "prompt_tokens") return say("turn_prompt_tokens", turn, right[0], got[0]);
  return say("turn", turn) + say("reason_wrong", reason_name(right[0]), reason_name(got[0]));
}

// Several turns over one session, ours and the student's. chat_turn only composes functions that
// are judged elsewhere, so there is one right answer.
class Turns {
 public:
  Turns(const std::string& name, Inputs& inputs, const Plan& plan = {})
      : plan_(plan),
        engine_(walker_engine(usual())),
        session_(engine_, plan.context),
        seed_(inputs.size(0, 1u << 30)),
        random_(seed_) {
    session_.engine().step_results().set_probe(
        [this](int, std::string_view what, MatrixView<const float> value) {
          if (what == "embedding") rows_ += static_cast<int>(value.rows());
        });
    one_.name = name;
    one_.request.function = "chat_turn";
    one_.request.texts = {{"model", usual().string()}};
    one_.request.inputs = {{"end_tokens", numbers({end_token()})}};
    if (plan.refusable) one_.request.inputs["refusable"] = numbers({1});
    one_.request.scalars = {{"context", static_cast<double>(plan.context)},
                            {"max_tokens", static_cast<double>(plan.max_tokens)},
                            {"temperature", 0.9},
                            {"seed", static_cast<double>(seed_)},
                            {"stopped_turn", static_cast<double>(plan.stopped_turn)},
                            {"stop_after", static_cast<double>(plan.stop_after)}};
  }

  // Adds a turn; returns our answer.
  std::string take(std::span<const TokenId> conversation) {
    const std::string turn = fmt::format("turn {}", ++n_turns_);
    TextOptions options;
    options.generation.max_tokens = plan_.max_tokens;
    options.generation.sampler.temperature = 0.9f;
    options.generation.end_tokens = {end_token()};
    std::size_t calls_left = n_turns_ == plan_.stopped_turn ? plan_.stop_after : ~0ull;
    std::string text;
    rows_ = 0;
    TextResult result;
    bool refused = false;
    try {
      result = chat_turn(Talk::tokenizer(), session_, conversation, options, random_,
                         [&](std::string_view piece) {
                           text += piece;
                           return --calls_left != 0;
                         });
    } catch (const Error&) {
      refused = true;
    }
    one_.request.inputs[turn] = numbers({conversation.begin(), conversation.end()});
    if (plan_.refusable) one_.expected[turn + " Error"] = exactly({refused});
    const auto held = session_.tokens();
    one_.expected[turn + " cache"] = exactly({held.begin(), held.end()});
    if (refused) return text;
    reason_ = result.reason;
    if (plan_.kept_cache) {
      one_.expected[turn + " computed"] = exactly({rows_});
      one_.expected[turn + " prompt_tokens"] = exactly({static_cast<int>(result.prompt_tokens)});
    }
    one_.expected[turn + " reason"] = exactly({static_cast<int>(result.reason)});
    one_.expected[turn + " text"] = exactly(bytes_of(text));
    one_.expected[turn + " tokens"] = exactly(result.tokens);
    return text;
  }

  StopReason reason() const { return reason_; }  // of the last turn

  bool judge() { return stages::judge(finished()); }

  Case finished() {
    one_.request.scalars["turns"] = static_cast<double>(n_turns_);
    one_.describe = [expected = one_.expected, spell = spelling(usual())](const std::string& output,
                                                                          const Tensor& got) {
      const std::size_t space = output.find(' ', 5);  // "turn 2 cache"
      const auto error = expected.find(output.substr(0, space) + " Error");
      if (output.ends_with("cache") && error != expected.end() && error->second.values[0] == 1.0) {
        return say("changed_by_refusal", say("turn_cache", output.substr(5, space - 5)));
      }
      return tell_turn(output.substr(5, space - 5), output.substr(space + 1),
                       expected.at(output).values, got.values, spell);
    };
    return one_;
  }

 private:
  static TokenId end_token() { return chat_token(Talk::tokenizer(), kChatEnd); }

  Plan plan_;
  Engine engine_;
  Session session_;
  std::size_t seed_;
  Random random_;
  int rows_ = 0;
  StopReason reason_ = StopReason::MaxTokens;
  std::size_t n_turns_ = 0;
  Case one_;
};

TEST(ChatTurn, AnswersAConversation) {
  Inputs inputs;
  Talk talk(inputs);
  talk.ask();
  Turns cut("one turn, cut by max_tokens", inputs);
  cut.take(talk.tokens());
  if (!cut.judge()) return;
  Turns whole("one turn, until the model ends it", inputs, {.max_tokens = 300});
  whole.take(talk.tokens());
  whole.judge();
}

TEST(ChatTurn, StopsWhenTheListenerSays) {
  Inputs inputs;
  for (bool shown = false; !shown;) {  // until an answer has three pieces
    Talk talk(inputs);
    talk.ask();
    Turns answer("stopped at the third piece of the answer", inputs,
                 {.stopped_turn = 1, .stop_after = 3});
    answer.take(talk.tokens());
    shown = answer.reason() == StopReason::Stopped;
    if (shown && !answer.judge()) return;
  }
  Talk talk(inputs);
  talk.ask(60);
  Turns prompt("stopped while a long conversation is computed", inputs,
               {.stopped_turn = 1, .stop_after = 1});
  prompt.take(talk.tokens());
  prompt.judge();
}

TEST(ChatTurn, RefusesAConversationThatIsEmptyOrTooLongAndStaysAsItWas) {
  Inputs inputs;
  Talk talk(inputs);
  talk.ask();
  const std::vector<TokenId> fits = talk.tokens();
  const Plan plan{.context = fits.size() + 30, .max_tokens = 5, .refusable = true};
  Turns empty("an empty conversation", inputs, plan);
  empty.take(fits);
  empty.take({});
  empty.judge();
  Plan two_turns = plan;
  two_turns.kept_cache = false;  // whether it is kept is a question of ChatKeptCache
  Turns again("an empty conversation after two others", inputs, two_turns);
  again.take(std::span(fits).first(fits.size() / 2));
  again.take(fits);
  again.take({});
  again.judge();
  Turns longer("a conversation one token longer than the context", inputs, plan);
  longer.take(fits);
  longer.take(std::vector<TokenId>(plan.context + 1, 7));
  longer.judge();
  Turns twice("a conversation twice as long as the context", inputs, plan);
  twice.take(fits);
  twice.take(std::vector<TokenId>(2 * plan.context, 7));
  twice.judge();
  for (const TokenId token : {7, 8}) {
    Turns full(fmt::format("a conversation as long as the context, of token {}", token), inputs,
               plan);
    full.take(std::vector<TokenId>(plan.context, token));
    full.judge();
  }
}

TEST(ChatKeptCache, ComputesOnlyWhatIsNew) {
  Inputs inputs;
  Talk talk(inputs);
  Turns turns("three questions, one after the other", inputs);
  for (int n = 0; n < 3; ++n) {
    talk.ask();
    talk.answer(turns.take(talk.tokens()));
  }
  if (!turns.judge()) return;

  Talk long_talk(inputs);
  Turns long_turns("long questions, one after the other", inputs, {.context = 900});
  for (int n = 0; n < 4; ++n) {
    long_talk.ask(60);
    long_talk.answer(long_turns.take(long_talk.tokens()));
  }
  must_show(long_talk.tokens().size() > 300, "more than 256 kept tokens");
  long_turns.judge();
}

TEST(ChatKeptCache, ForgetsWhatDepartsFromTheConversation) {
  Inputs inputs;
  Talk talk(inputs);
  Turns undone("the second question taken back, and another asked", inputs);
  for (int n = 0; n < 2; ++n) {
    talk.ask();
    talk.answer(undone.take(talk.tokens()));
  }
  const std::vector<TokenId> before = talk.tokens();
  talk.take_back(2);
  talk.ask();
  const std::vector<TokenId> after = talk.tokens();
  must_show(
      !std::ranges::equal(after, std::span(before).first(std::min(before.size(), after.size()))),
      "another question");
  undone.take(after);
  if (!undone.judge()) return;

  Talk first(inputs);
  Turns other("two questions, and then another conversation", inputs);
  for (int n = 0; n < 2; ++n) {
    first.ask();
    first.answer(other.take(first.tokens()));
  }
  Talk second(inputs);
  second.ask(60);
  other.take(second.tokens());
  if (!other.judge()) return;

  // Both texts have the same length and differ in a single token.
  for (const std::size_t part : {2, 3, 1000}) {
    Turns changed(part == 1000
                      ? "the first token of the conversation is another"
                      : fmt::format("one token at 1/{} of the conversation is another", part),
                  inputs);
    std::vector<TokenId> conversation = talk.tokens();
    changed.take(conversation);
    TokenId& token = conversation[conversation.size() / part];
    token = token == 20 ? 21 : 20;
    changed.take(conversation);
    changed.judge();
  }
}

TEST(ChatKeptCache, IsThatOfItsSession) {
  Inputs inputs;
  std::vector<Case> cases;
  for (const std::size_t n_words : {4, 9}) {
    Talk talk(inputs);
    Turns turns("", inputs);
    for (int n = 0; n < 2; ++n) {
      talk.ask(n_words);
      talk.answer(turns.take(talk.tokens()));
    }
    cases.push_back(turns.finished());
  }
  stages::judge(in_turn("two sessions in one program", cases));
}

TEST(ChatKeptCache, AnswersWhatItHasHeardBefore) {
  Inputs inputs;
  Talk talk(inputs);
  Turns again("the same conversation again", inputs);
  talk.ask();
  const std::vector<TokenId> first = talk.tokens();
  talk.answer(again.take(first));
  again.take(first);
  if (!again.judge()) return;

  talk.ask(60);
  Turns stopped("stopped while a long conversation is computed, and asked again", inputs,
                {.stopped_turn = 1, .stop_after = 1});
  stopped.take(talk.tokens());
  stopped.take(talk.tokens());
  if (!stopped.judge()) return;

  Turns back("back to the first question after the second", inputs);
  back.take(first);
  talk.ask();
  back.take(talk.tokens());
  back.take(first);
  back.judge();
}

}  // namespace
}  // namespace stagecraft::stages
