#include "serve/scheduler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/engines.h"
#include "tests/support/random_model.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {

// Names the parameter of a test. Without it, googletest prints its bytes, with those of the
// padding.
void PrintTo(const EngineOptions& engine, std::ostream* out) {
  *out << fmt::format("{}_{}_threads_kv_{}",
                      engine.backend == BackendKind::Cpu ? "cpu" : "textbook", engine.n_threads,
                      name_of(*engine.kv_type));
}

namespace {

// A generated text.
struct Made {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  std::vector<std::pair<TokenId, float>> top;  // of all tokens, one after the other
  StopReason reason = StopReason::Stopped;
  bool operator==(const Made&) const = default;
};

constexpr std::size_t kContext = 200;

class SchedulerTest : public testing::TestWithParam<EngineOptions> {
 protected:
  explicit SchedulerTest(const RandomModelSizes& sizes = {})
      : tokenizer_(Tokenizer::open(tiny_.folder())) {
    write_random_model(folder_.path(), sizes);
    engine_.emplace(Engine::open(folder_.path(), GetParam()));
  }

  // A prompt of random length, often with a common beginning, and random options.
  TextRequest random_request(std::mt19937& random) {
    TextRequest request;
    const std::size_t shared = random() % 3 == 0 ? 40 : 0;
    for (std::size_t i = 0; i < shared; ++i) request.prompt.push_back(static_cast<TokenId>(i));
    for (std::size_t i = 1 + random() % (random() % 4 == 0 ? 150 : 20); i > 0; --i) {
      request.prompt.push_back(static_cast<TokenId>(random() % 515));
    }
    GenerationOptions& options = request.options.generation;
    options.max_tokens = 1 + random() % 40;
    options.sampler = {random() % 4 == 0 ? 0.0f : 0.9f, random() % 2 == 0 ? 0u : 40u, 0.95f};
    options.repeat_penalty = random() % 2 == 0 ? 1.0f : 1.2f;
    if (random() % 3 == 0) request.options.rules = {{{7, 3.0f}}, 0.5f, 0.25f, 0.05f};
    for (TokenId id = 0; id < 10; ++id) options.end_tokens.push_back(id * 50);
    if (random() % 2 == 0) request.options.stops = {"a", "e", "i", "o", "s", "t", "K", "Q", "he"};
    request.seed = random();
    request.n_top = 3;
    return request;
  }

  // The same text, made as a chat in the terminal makes it, in an engine that does nothing else.
  Made alone(const TextRequest& request) {
    Session session(*engine_, kContext);
    Random random(request.seed);
    Made made;
    const TextResult result = generate_text(tokenizer_, session, request.prompt, request.options,
                                            random, [&](std::string_view piece) {
                                              made.text += piece;
                                              return true;
                                            });
    made.tokens = result.tokens;
    made.reason = result.reason;
    return made;
  }

  // Generates many texts together, and each of them alone.
  void expect_each_as_alone();

  // Takes events until n more texts have ended.
  void collect(Scheduler& scheduler, std::size_t n, std::map<TextId, Made>& all) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (n > 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << n << " texts have not ended";
      for (const TextEvent& event : scheduler.take_events()) {
        Made& made = all[event.text];
        made.text += event.piece;
        if (event.score) {
          made.tokens.push_back(event.score->token);
          made.logprobs.push_back(event.score->logprob);
          made.top.insert(made.top.end(), event.score->top.begin(), event.score->top.end());
        }
        if (!event.end) continue;
        EXPECT_EQ(event.end->error, "");
        EXPECT_EQ(event.end->new_tokens, made.tokens.size());
        made.reason = event.end->reason;
        --n;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  TinyChatModel tiny_;
  TemporaryFolder folder_;
  Tokenizer tokenizer_;
  std::optional<Engine> engine_;
};

void SchedulerTest::expect_each_as_alone() {
  constexpr std::size_t kTexts = 40;
  std::mt19937 random(5);
  std::vector<TextRequest> requests;
  for (std::size_t i = 0; i < kTexts; ++i) requests.push_back(random_request(random));

  std::map<TextId, Made> together;
  std::vector<TextId> ids;
  {
    Scheduler scheduler(*engine_, tokenizer_, {6, kContext, kTexts}, [] {});
    for (const TextRequest& request : requests) {
      ids.push_back(scheduler.submit({request}).value());
      if (random() % 2 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 9000));
    }
    collect(scheduler, kTexts, together);
    EXPECT_EQ(scheduler.stats().running, 0u);
  }
  std::map<StopReason, int> reasons;
  for (std::size_t i = 0; i < kTexts; ++i) {
    Made& made = together[ids[i]];
    std::map<TextId, Made> single;  // a scheduler with one text gives the expected logprobs
    Scheduler scheduler(*engine_, tokenizer_, {1, kContext, 1}, [] {});
    const TextId id = scheduler.submit({requests[i]}).value();
    collect(scheduler, 1, single);
    EXPECT_EQ(made, single[id]) << "text " << i;
    EXPECT_EQ(scheduler.stats().new_tokens, made.tokens.size()) << "text " << i;
    const Made expected = alone(requests[i]);
    EXPECT_EQ(made.text, expected.text) << "text " << i;
    EXPECT_EQ(made.tokens, expected.tokens) << "text " << i;
    EXPECT_EQ(made.reason, expected.reason) << "text " << i;
    ++reasons[made.reason];
  }
  EXPECT_GT(reasons[StopReason::EndToken], 1);
  EXPECT_GT(reasons[StopReason::MaxTokens], 1);
  EXPECT_GT(reasons[StopReason::Stopped], 1);
}

TEST_P(SchedulerTest, MakesEachTextAsItIsMadeAloneWhateverElseRuns) { expect_each_as_alone(); }

// In these prompts, every token sees all others: each prompt goes in one step, beside texts that
// are being generated.
TEST_P(SchedulerTest, ComputesAPromptThatCannotBeCutInOneStep) {
  engine_.emplace(Engine::open(TEST_DATA "/models/chatglm-gmask", GetParam()));
  std::mt19937 random(6);
  std::vector<TextRequest> requests(20);
  for (TextRequest& request : requests) {
    const std::size_t shared = random() % 3 == 0 ? 30 : 0;  // no other text can reuse it
    for (std::size_t i = 0; i < shared; ++i) request.prompt.push_back(static_cast<TokenId>(i));
    for (std::size_t i = random() % 130; i > 0; --i) {
      request.prompt.push_back(static_cast<TokenId>(random() % 33));
    }
    request.prompt.insert(request.prompt.end(), {34, 35});
    request.options.generation.max_tokens = 1 + random() % 30;
    request.options.generation.sampler.temperature = 0.0f;
    request.n_top = 1;
  }
  requests.push_back(requests.front());  // a place may still hold it

  Scheduler scheduler(*engine_, tokenizer_, {4, kContext, requests.size()}, [] {});
  EXPECT_THROW(scheduler.submit({TextRequest{{1, 2, 3}, {}, 0, {}}}), Error);  // lacks its end
  std::map<TextId, Made> together;
  const TextId first = scheduler.submit(requests).value();
  collect(scheduler, requests.size(), together);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    EXPECT_EQ(together[first + i].tokens, alone(requests[i]).tokens) << "text " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, SchedulerTest,
                         testing::Values(EngineOptions{BackendKind::Cpu, 1, KvType::F32},
                                         EngineOptions{BackendKind::Cpu, 2, KvType::F32},
                                         EngineOptions{BackendKind::Cpu, 2, KvType::Q8_0},
                                         EngineOptions{BackendKind::Textbook, 1, KvType::F32}),
                         testing::PrintToStringParamName());

// The model has a state that cannot be cut. Places are used again, and prompts share beginnings.
class StatefulSchedulerTest : public SchedulerTest {
 protected:
  StatefulSchedulerTest() : SchedulerTest({.convolves = true}) {}
};

TEST_P(StatefulSchedulerTest, MakesEachTextAsItIsMadeAloneWhateverElseRuns) {
  expect_each_as_alone();
}

INSTANTIATE_TEST_SUITE_P(Engines, StatefulSchedulerTest,
                         testing::Values(EngineOptions{BackendKind::Cpu, 2, KvType::F32},
                                         EngineOptions{BackendKind::Textbook, 1, KvType::F32}),
                         testing::PrintToStringParamName());

class SchedulerOnOneEngine : public SchedulerTest {};
INSTANTIATE_TEST_SUITE_P(, SchedulerOnOneEngine,
                         testing::Values(EngineOptions{BackendKind::Cpu, 1, KvType::F32}),
                         testing::PrintToStringParamName());

TextRequest long_request() {
  TextRequest request;
  request.prompt = {1, 2, 3};
  request.options.generation.max_tokens = 190;
  request.options.generation.sampler.temperature = 0.9f;
  request.n_top = 0;
  return request;
}

TEST_P(SchedulerOnOneEngine, ComputesOnlyWhatIsNewInAChatThatGoesOn) {
  Scheduler scheduler(*engine_, tokenizer_, {2, kContext, 8}, [] {});
  TextRequest request = long_request();
  request.options.generation.max_tokens = 20;
  std::map<TextId, Made> all;
  const TextId first = scheduler.submit({request}).value();
  collect(scheduler, 1, all);
  EXPECT_EQ(scheduler.stats().cached_tokens, 0u);

  const auto& answer = all[first].tokens;
  request.prompt.insert(request.prompt.end(), answer.begin(), answer.end());
  request.prompt.push_back(9);
  const TextId second = scheduler.submit({request}).value();
  collect(scheduler, 1, all);
  // The last token of an answer is never fed to the model.
  EXPECT_EQ(scheduler.stats().cached_tokens, 3 + answer.size() - 1);
  EXPECT_EQ(scheduler.stats().prompt_tokens, 3u + 2u);
  EXPECT_EQ(all[second].tokens, alone(request).tokens);
  EXPECT_EQ(scheduler.stats().new_tokens, answer.size() + all[second].tokens.size());
}

TEST_P(SchedulerOnOneEngine, ComputesABeginningThatTextsShareOnce) {
  Scheduler scheduler(*engine_, tokenizer_, {4, kContext, 8}, [] {});
  TextRequest request = long_request();
  request.options.generation.max_tokens = 10;
  request.prompt.clear();
  for (TokenId i = 0; i < 100; ++i) request.prompt.push_back(i * 5 % 511);
  std::vector<TextRequest> three(3, request);
  for (std::size_t i = 0; i < 3; ++i) three[i].seed = i;
  three[2].prompt.push_back(7);
  std::map<TextId, Made> all;
  const TextId first = scheduler.submit(three).value();
  collect(scheduler, 3, all);
  EXPECT_EQ(scheduler.stats().prompt_tokens, 100u + 1u + 1u);
  EXPECT_EQ(scheduler.stats().cached_tokens, 99u + 100u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(all[first + i].tokens, alone(three[i]).tokens) << i;

  // A further text takes a place of its own. Its beginning is copied from a text that has ended.
  request.prompt.resize(50);
  request.prompt.insert(request.prompt.end(), 20, 3);
  const TextId last = scheduler.submit({request}).value();
  collect(scheduler, 1, all);
  EXPECT_EQ(scheduler.stats().prompt_tokens, 100u + 1u + 1u + 20u);
  EXPECT_EQ(all[last].tokens, alone(request).tokens);
}

// Conversations take turns. Each is longer than a page and begins with a system prompt.
TEST_P(SchedulerOnOneEngine, KeepsMoreTextsThanItMakesAtOnceAndTheirBeginningOnce) {
  constexpr std::size_t kChats = 6, kSystem = 128, kMessage = 30;
  Scheduler scheduler(*engine_, tokenizer_, {2, kContext, 8}, [] {});  // memory: 8 pages of 64
  std::vector<TextRequest> chats(kChats, long_request());
  std::map<TextId, Made> all;
  for (std::size_t i = 0; i < kChats; ++i) {
    TextRequest& chat = chats[i];
    chat.options.generation.max_tokens = 5;
    chat.prompt.assign(kSystem, 7);
    chat.prompt.insert(chat.prompt.end(), kMessage, static_cast<TokenId>(100 + i));
    const TextId id = scheduler.submit({chat}).value();
    collect(scheduler, 1, all);
    EXPECT_EQ(all[id].tokens, alone(chat).tokens) << i;
    chat.prompt.insert(chat.prompt.end(), all[id].tokens.begin(), all[id].tokens.end());
    chat.prompt.push_back(9);
  }
  EXPECT_EQ(scheduler.stats().prompt_tokens, kSystem + kChats * kMessage);
  const std::uint64_t before = scheduler.stats().prompt_tokens;
  for (const TextRequest& chat : chats) {
    const TextId id = scheduler.submit({chat}).value();
    collect(scheduler, 1, all);
    EXPECT_EQ(all[id].tokens, alone(chat).tokens);
  }
  // The last token of an answer was never fed to the model.
  EXPECT_EQ(scheduler.stats().prompt_tokens - before, kChats * 2);
}

TEST_P(SchedulerOnOneEngine, ForgetsWhatWasUnusedForLongestWhereMemoryGetsShort) {
  constexpr std::size_t kChats = 10;
  Scheduler scheduler(*engine_, tokenizer_, {2, kContext, 8}, [] {});  // memory: 8 pages of 64
  TextRequest chat = long_request();
  chat.options.generation.max_tokens = 1;
  std::map<TextId, Made> all;
  const auto computed = [&](std::size_t i) {
    chat.prompt.assign(40, static_cast<TokenId>(100 + i));
    const std::uint64_t before = scheduler.stats().prompt_tokens;
    const TextId id = scheduler.submit({chat}).value();
    collect(scheduler, 1, all);
    EXPECT_EQ(all[id].tokens, alone(chat).tokens) << i;
    return scheduler.stats().prompt_tokens - before;
  };
  for (std::size_t i = 0; i < kChats; ++i) EXPECT_EQ(computed(i), 40u);
  EXPECT_EQ(computed(9), 1u);
  EXPECT_EQ(computed(2), 1u);
  EXPECT_EQ(computed(1), 40u);  // it was dropped; now 3 is dropped
  EXPECT_EQ(computed(2), 1u);
  EXPECT_EQ(computed(3), 40u);
}

TEST_P(SchedulerOnOneEngine, GoesOnByItselfWhereATextIsCancelledThatItWaitsFor) {
  Scheduler scheduler(*engine_, tokenizer_, {2, kContext, 8}, [] {});
  for (int round = 0; round < 20; ++round) {
    TextRequest request = long_request();
    request.options.generation.max_tokens = 3;
    request.prompt.assign(190, static_cast<TokenId>(round));
    const TextId first = scheduler.submit({request, request}).value();
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    scheduler.cancel(first);
    std::vector<TokenId> tokens;
    for (int waited = 0; tokens.size() < 3 && waited < 10'000; ++waited) {
      for (const TextEvent& event : scheduler.take_events()) {
        if (event.text == first + 1 && event.score) tokens.push_back(event.score->token);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(tokens, alone(request).tokens) << round;
  }
}

TEST_P(SchedulerOnOneEngine, RefusesMoreThanItsPlacesAndQueueHoldAllOrNone) {
  Scheduler scheduler(*engine_, tokenizer_, {1, kContext, 2}, [] {});
  const TextRequest request = long_request();
  EXPECT_FALSE(scheduler.submit({request, request, request, request}));
  const TextId first = scheduler.submit({request, request}).value();
  EXPECT_FALSE(scheduler.submit({request, request}));
  EXPECT_TRUE(scheduler.submit({request}));
  EXPECT_FALSE(scheduler.submit({request}));
  scheduler.cancel(first + 1);
  EXPECT_TRUE(scheduler.submit({request}));
}

TEST_P(SchedulerOnOneEngine, CountsNoTextThatWasCancelledWhileItWaited) {
  Scheduler scheduler(*engine_, tokenizer_, {1, kContext, 8}, [] {});
  const TextId first = scheduler.submit(std::vector<TextRequest>(3, long_request())).value();
  scheduler.cancel(first + 2);
  const SchedulerStats stats = scheduler.stats();
  EXPECT_EQ(stats.waiting + stats.running, 2u);
  EXPECT_LE(stats.waiting, 2u);
}

TEST_P(SchedulerOnOneEngine, GivesThePlaceOfACancelledTextToTheNextOne) {
  Scheduler scheduler(*engine_, tokenizer_, {1, kContext, 8}, [] {});
  const TextRequest request = long_request();
  const std::vector<TextRequest> four(4, request);
  const TextId first = scheduler.submit(four).value();
  for (TextId id = first; id < first + 3; ++id) scheduler.cancel(id);  // running or waiting
  std::map<TextId, Made> all;
  collect(scheduler, 1, all);
  EXPECT_EQ(all[first + 3].tokens, alone(request).tokens);
  for (TextId id = first; id < first + 3; ++id) {
    EXPECT_EQ(all[id].reason, StopReason::Stopped) << "no end was told of a cancelled text";
  }
  EXPECT_LT(scheduler.stats().new_tokens, 2 * 190u);
}

TEST_P(SchedulerOnOneEngine, AnErrorEndsItsTextAlone) {
  const TemporaryFolder folder;
  RandomModelSizes sizes;
  sizes.gain = NAN;
  write_random_model(folder.path(), sizes);
  Engine broken = Engine::open(folder.path(), GetParam());
  Scheduler scheduler(broken, tokenizer_, {2, kContext, 8}, [] {});
  const TextId id = scheduler.submit({long_request()}).value();
  std::vector<TextEvent> events;
  for (int i = 0; i < 2000 && events.empty(); ++i) {
    events = scheduler.take_events();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].text, id);
  ASSERT_TRUE(events[0].end);
  EXPECT_NE(events[0].end->error.find("the weights are broken"), std::string::npos)
      << events[0].end->error;
  EXPECT_TRUE(scheduler.submit({long_request()}));  // the scheduler still works
}

}  // namespace
}  // namespace stagecraft
