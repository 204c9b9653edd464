#include "serve/glass_box.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "generation/ranking.h"
#include "inspection/peek.h"
#include "inspection/trace.h"
#include "tests/support/engines.h"
#include "tests/support/random_model.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

using nlohmann::json;

class GlassBoxTest : public testing::Test {
 protected:
  GlassBoxTest() : tokenizer_(Tokenizer::open(folder_.folder())) {}

  std::function<Engine()> opener() {
    return [this] { return walker_engine(folder_.folder()); };
  }
  static GlassRequest request(GlassView view, std::vector<TokenId> tokens = {5, 70, 9, 33}) {
    GlassRequest made;
    made.view = view;
    made.tokens = std::move(tokens);
    made.sampler = {0.8f, 40, 0.95f};
    made.top = 7;
    return made;
  }
  static GlassAnswer wait(GlassBox& box) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < end) {
      std::vector<GlassAnswer> answers = box.take_answers();
      if (!answers.empty()) return answers.at(0);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ADD_FAILURE() << "no answer";
    return {};
  }
  json ask(GlassBox& box, const GlassRequest& one) {
    const GlassId id = box.submit(one).value();
    const GlassAnswer answer = wait(box);
    EXPECT_EQ(answer.id, id);
    EXPECT_EQ(answer.error, "");
    return json::parse(answer.json);
  }

  TinyChatModel folder_;
  Tokenizer tokenizer_;
};

TEST_F(GlassBoxTest, ShowsTheNumbersOfPeek) {
  GlassBox box(opener(), tokenizer_, 100, [] {});
  const GlassRequest choices = request(GlassView::Choices);
  Engine engine = walker_engine(folder_.folder());
  const Peek peeked = peek(engine, choices.tokens, 1, nullptr);
  const auto expected = top_tokens(peeked.next.view().row(0), choices.top);
  const json found = ask(box, choices);
  ASSERT_EQ(found["choices"].size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const json& one = found["choices"][i];
    EXPECT_EQ(one["token"], expected[i].token);
    EXPECT_EQ(one["rank"], i);
    EXPECT_NEAR(one["probability"].get<float>(), expected[i].value, 1e-6f);
  }
  const json attention = ask(box, request(GlassView::Attention));
  EXPECT_EQ(attention["texts"].size(), choices.tokens.size());
  ASSERT_EQ(attention["layers"].size(), engine.plan().n_layers);
  for (std::size_t layer = 0; layer < engine.plan().n_layers; ++layer) {
    ASSERT_EQ(attention["layers"][layer]["heads"].size(), max_heads(engine.plan()));
    for (std::size_t head = 0; head < max_heads(engine.plan()); ++head) {
      const HeadIndex index{layer, head};
      const Peek one = peek(engine, choices.tokens, 1, &index);
      const auto row = one.attention.view().row(choices.tokens.size() - 1);
      for (std::size_t i = 0; i < row.size(); ++i) {
        EXPECT_NEAR(attention["layers"][layer]["heads"][head][i].get<float>(), row[i], 5.1e-5f);
      }
    }
  }
}

TEST_F(GlassBoxTest, TheLastLayersGuessesAreTheChoices) {
  GlassBox box(opener(), tokenizer_, 100, [] {});
  GlassRequest layers = request(GlassView::Layers);
  layers.next = 17;
  const json found = ask(box, layers);
  GlassRequest asked = request(GlassView::Choices);
  asked.next = 17;
  const json choices = ask(box, asked)["choices"];
  const json& last = found["layers"].back();
  for (std::size_t i = 0; i < layers.top; ++i) {
    EXPECT_EQ(last["guesses"][i]["token"], choices[i]["token"]);
    EXPECT_EQ(last["guesses"][i]["probability"], choices[i]["probability"]);
  }
  EXPECT_EQ(choices.back()["token"], 17);  // listed although it is not among the likeliest
  EXPECT_GE(choices.back()["rank"].get<std::size_t>(), layers.top);
  EXPECT_EQ(last["next"]["rank"], choices.back()["rank"]);
}

TEST_F(GlassBoxTest, StepsAreThoseOfTrace) {
  GlassBox box(opener(), tokenizer_, 100, [] {});
  const GlassRequest steps = request(GlassView::Steps);
  const json found = ask(box, steps);
  Engine engine = walker_engine(folder_.folder());
  const std::size_t passes[] = {steps.tokens.size()};
  std::vector<std::string> expected, names;
  for (const Activation& one : trace(engine, steps.tokens, passes)) {
    if (!one.name.ends_with("attn_probs")) expected.push_back(one.name);
  }
  for (const json& step : found["steps"]) {
    const std::string name = step["name"];
    names.push_back(step["layer"].is_null()
                        ? name
                        : fmt::format("layers.{}.{}", step["layer"].get<int>(), name));
    EXPECT_GE(step["microseconds"].get<double>(), 0.0);
  }
  EXPECT_EQ(names, expected);
  EXPECT_GT(found["bytes"].get<double>(), 0.0);
}

TEST_F(GlassBoxTest, ThePenaltyChangesWhatSamplingSeesAndNotTheModelsProbability) {
  GlassBox box(opener(), tokenizer_, 100, [] {});
  GlassRequest asked = request(GlassView::Choices);
  asked.sampler = {.temperature = 50.0f};  // all shares are large enough to be seen
  asked.next = asked.tokens.front();
  const auto of_next = [&] {
    const json list = ask(box, asked)["choices"];
    const auto found =
        std::ranges::find(list, json(*asked.next), [](const json& one) { return one["token"]; });
    return found == list.end() ? json() : *found;
  };
  const json plain = of_next();
  asked.repeat_penalty = 100.0f;
  const json penalized = of_next();
  EXPECT_EQ(penalized["logit"], plain["logit"]);
  EXPECT_EQ(penalized["probability"], plain["probability"]);
  EXPECT_NE(penalized["after_temperature"], plain["after_temperature"]);
  asked.repeat_last_n = asked.tokens.size() - 1;  // all but the token that is asked for
  EXPECT_EQ(of_next()["logit"], plain["logit"]);
  EXPECT_NE(of_next()["after_temperature"], penalized["after_temperature"]);
  asked.repeat_last_n = 0;
  EXPECT_EQ(of_next(), plain);
  asked.min_p = 1.0f;  // leaves only the likeliest token
  EXPECT_EQ(of_next()["logit"], plain["logit"]);
  EXPECT_EQ(of_next()["after_temperature"], 0.0);
}

TEST_F(GlassBoxTest, BoundsWhatWaitsAndForgetsWhatIsCancelled) {
  std::atomic<bool> go = false;
  GlassBox box(
      [&] {
        while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return walker_engine(folder_.folder());
      },
      tokenizer_, 100, [] {});
  std::vector<GlassId> ids;
  while (const auto id = box.submit(request(GlassView::Choices))) {
    ids.push_back(*id);
    ASSERT_LE(ids.size(), GlassBox::kMaxWaiting + 1);  // one may run
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GE(ids.size(), GlassBox::kMaxWaiting);
  for (const GlassId id : ids) {
    if (id != ids.back()) box.cancel(id);
  }
  go = true;
  EXPECT_EQ(wait(box).id, ids.back());
  EXPECT_TRUE(box.take_answers().empty());
}

TEST_F(GlassBoxTest, SaysWhatWentWrongAndGoesOn) {
  int n_opened = 0;
  GlassBox box(
      [&] {
        if (n_opened++ == 0) throw Error("no memory");
        return walker_engine(folder_.folder());
      },
      tokenizer_, 100, [] {});
  box.submit(request(GlassView::Choices));
  EXPECT_EQ(wait(box).error, "glass box: no memory");
  box.submit(request(GlassView::Choices, {5, 1'000'000}));
  EXPECT_NE(wait(box).error, "");
  ask(box, request(GlassView::Choices));
  EXPECT_EQ(n_opened, 2);
}

TEST_F(GlassBoxTest, ShowsNothingOfAModelThatComputesNaN) {
  const TemporaryFolder broken;
  RandomModelSizes sizes;
  sizes.gain = NAN;
  write_random_model(broken.path(), sizes);
  GlassBox box([&] { return walker_engine(broken.path()); }, tokenizer_, 100, [] {});
  for (const GlassView view : {GlassView::Choices, GlassView::Layers, GlassView::Attention}) {
    box.submit(request(view, {5, 7}));
    const GlassAnswer answer = wait(box);
    EXPECT_EQ(answer.json, "");
    EXPECT_NE(answer.error.find("the weights are broken"), std::string::npos) << answer.error;
  }
}

}  // namespace
}  // namespace stagecraft
