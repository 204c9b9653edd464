// A prompt with bidirectional attention is computed in one pass and kept whole, on both backends.
#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "generation/session.h"
#include "inspection/trace_file.h"
#include "model/placement.h"
#include "tests/support/tiny_models.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

// The text of chatglm-gmask: a prompt of 5 tokens, its end, 4 more.
class Prompt : public testing::TestWithParam<BackendKind> {
 protected:
  std::vector<float> logits_after(Sequence& sequence, std::span<const TokenId> tokens) {
    Matrix<float> logits(1, engine_.plan().vocab_size);
    const Input input{&sequence, tokens, 1};
    engine_.forward({&input, 1}, logits.view());
    return {logits.data(), logits.data() + logits.cols()};
  }
  std::string refusal(Sequence& sequence, std::span<const TokenId> tokens) {
    try {
      logits_after(sequence, tokens);
      return "not refused";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const fs::path folder_ = TEST_DATA "/models/chatglm-gmask";
  Engine engine_ = Engine::open(folder_, {GetParam(), 2, KvType::F32});
  const std::vector<TokenId> ids_ = ids_of(TraceFile(folder_ / "trace.safetensors"));
  const std::span<const TokenId> all_ = ids_;
  const std::unique_ptr<Sequence> sequence_ = engine_.make_sequence(16);
};

TEST_P(Prompt, IsRefusedInTwoPasses) {
  EXPECT_EQ(first_pass(engine_.plan(), ids_), 6u);
  EXPECT_EQ(refusal(*sequence_, all_.first(5)),
            "prompt: expected the whole prompt, up to token 35, at once (its tokens also attend to "
            "later ones), found none");
  EXPECT_EQ(sequence_->length(), 0u);
}

TEST_P(Prompt, IsRefusedWithoutAPlaceForTheAnswer) {
  const std::vector<TokenId> no_mask = {5, 17, 35, 8};
  EXPECT_EQ(refusal(*sequence_, no_mask),
            "prompt: expected mask token 34 (the place of the answer) before token 35, "
            "found none");
  EXPECT_EQ(sequence_->length(), 0u);
  const std::vector<TokenId> empty = {35, 8, 35};
  EXPECT_EQ(refusal(*sequence_, empty), "not refused");
}

TEST_P(Prompt, IsKeptWholeOrForgotten) {
  const std::vector<float> expected = logits_after(*sequence_, all_);
  EXPECT_EQ(sequence_->truncate(20), 10u);
  EXPECT_EQ(sequence_->truncate(6), 6u);
  EXPECT_EQ(logits_after(*sequence_, all_.subspan(6)), expected);
  EXPECT_EQ(sequence_->truncate(5), 0u);
  EXPECT_EQ(logits_after(*sequence_, all_), expected);
  EXPECT_EQ(sequence_->truncate(2), 0u);
}

TEST_P(Prompt, IsCopiedWholeOrNotAtAll) {
  const std::vector<float> expected = logits_after(*sequence_, all_);
  const auto other = engine_.make_sequence(16);
  EXPECT_FALSE(other->copy(*sequence_, 4));
  if (GetParam() == BackendKind::Textbook) return;  // cannot copy
  ASSERT_TRUE(other->copy(*sequence_, 7));
  EXPECT_EQ(logits_after(*other, all_.subspan(7)), expected);
}

// One batch of texts with prompts of different lengths, one of them empty.
TEST_P(Prompt, OfEachTextInABatchIsItsOwn) {
  const std::vector<TokenId> second = {9, 34, 35, 8, 4}, third = {35, 7, 1};
  std::vector<std::vector<float>> alone;
  std::vector<std::unique_ptr<Sequence>> sequences;
  std::vector<Input> inputs;
  const std::span<const TokenId> texts[] = {all_, second, third};
  for (const std::span<const TokenId> text : texts) {
    sequence_->truncate(0);
    alone.push_back(logits_after(*sequence_, text));
    inputs.push_back({sequences.emplace_back(engine_.make_sequence(16, 32)).get(), text, 1});
  }
  Matrix<float> logits(inputs.size(), engine_.plan().vocab_size);
  engine_.forward(inputs, logits.view());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto row = logits.view().row(i);
    EXPECT_EQ(std::vector<float>(row.begin(), row.end()), alone[i]) << i;
  }
}

// Longer than a pass of other models: 64 tokens, or 512.
TEST_P(Prompt, GoesInOnePassHoweverLongItIs) {
  Session session(engine_, 700);
  std::vector<TokenId> text(600, 7);
  text[598] = 34;
  text[599] = 35;
  EXPECT_TRUE(session.feed(text));
  EXPECT_EQ(session.tokens().size(), 600u);
}

INSTANTIATE_TEST_SUITE_P(Backend, Prompt, testing::Values(BackendKind::Textbook, BackendKind::Cpu),
                         [](const auto& parameter) {
                           return parameter.param == BackendKind::Cpu ? "cpu" : "textbook";
                         });

}  // namespace
}  // namespace stagecraft
