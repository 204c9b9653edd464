#include "generation/generate_text.h"

#include <gtest/gtest.h>

#include "base/stopwatch.h"
#include "base/utf8.h"
#include "tests/support/engines.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

class GenerateTextTest : public testing::Test {
 protected:
  GenerateTextTest() { options_.generation.max_tokens = 20; }

  TextResult generate(std::span<const TokenId> prompt,
                      const std::function<bool(std::string_view)>& on_text) {
    Session session(engine_, 512);
    Random random(3);
    return generate_text(tokenizer_, session, prompt, options_, random, on_text);
  }

  TinyChatModel folder_{{.endless = true}};
  Engine engine_ = textbook_engine(folder_.folder());
  Tokenizer tokenizer_ = Tokenizer::open(folder_.folder());
  TextOptions options_;
};

TEST_F(GenerateTextTest, ShowsNothingMoreOnceItIsToldToStop) {
  // The last byte is always held back: it could be the first one of a stop text.
  for (int byte = 2; byte < 256; ++byte) {
    options_.stops.push_back({static_cast<char>(byte), '\x01'});
  }
  std::string shown;
  int n = 0;
  const TextResult result = generate(std::vector<TokenId>{10}, [&](std::string_view text) {
    shown += text;
    n += text.empty() ? 0 : 1;
    return n < 3;
  });
  EXPECT_EQ(result.reason, StopReason::Stopped);
  EXPECT_EQ(n, 3);
  EXPECT_GT(utf8_with_replacements(tokenizer_.decode(result.tokens)).size(), shown.size())
      << "nothing was held back";
}

TEST_F(GenerateTextTest, CountsTheTimeOfThePromptAndThatOfTheTextApart) {
  const std::vector<TokenId> prompt(450, 10);
  options_.generation.max_tokens = 2;
  const Stopwatch watch;
  const TextResult result = generate(prompt, [](std::string_view) { return true; });
  EXPECT_LE(result.prompt_seconds + result.generation_seconds, watch.seconds());
  EXPECT_LT(0.0, result.prompt_seconds);
  EXPECT_LE(result.prompt_seconds, result.first_token_seconds);
  EXPECT_EQ(result.prompt_tokens, prompt.size());
}

}  // namespace
}  // namespace stagecraft
