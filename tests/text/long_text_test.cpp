// Long texts that take a bad tokenizer hours: the time must not be quadratic in the length of a
// word.
#include <ctime>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"
#include "text/pipeline/regex.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

std::string repeated(std::string_view unit, std::size_t n) {
  std::string text;
  for (std::size_t i = 0; i < n; ++i) text += unit;
  return text;
}

// Not wall-clock time: other programs may use the processor.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class LongText : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Every, LongText, testing::ValuesIn(kTokenizers),
                         [](const auto& instance) { return instance.param; });

// 100,000 repetitions take 10 to 60 ms here; a quadratic merge takes minutes. The limit allows for
// sanitizers and a busy machine.
TEST_P(LongText, IsEncodedInTimeThatDoesNotExplode) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / GetParam());
  for (const std::string_view unit : {"a", "the", " ", "\n", " a", "\xf0\x9f\x98\x80", "1", "!",
                                      "\xcc\x81\xcc\xa3", "<", "\xe5\xad\x97", "a\n", "\t "}) {
    const std::string text = repeated(unit, 100'000) + "x";
    const double start = cpu_seconds();
    const std::vector<TokenId> ids = tokenizer.encode(text, {});
    EXPECT_LT(cpu_seconds() - start, 10) << unit;
    EXPECT_FALSE(ids.empty());
  }
}

TEST(LongText, IsTheSameInManyShortOnesWhereALineEndsAWord) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "gpt2");
  const std::vector<TokenId> one = tokenizer.encode("The fox ran over the hill.\n", {});
  const std::vector<TokenId> many =
      tokenizer.encode(repeated("The fox ran over the hill.\n", 10'000), {});
  ASSERT_EQ(many.size(), 10'000 * one.size());
  for (std::size_t i = 0; i < many.size(); ++i) ASSERT_EQ(many[i], one[i % one.size()]);
}

TEST(LongText, OfCombiningMarksIsNormalizedInTimeThatDoesNotExplode) {
  // Combining classes 230 and 220 alternate, so the whole run must be sorted.
  std::string marks("a");
  marks += repeated("\xcc\x81\xcc\xa3", 200'000);
  const double start = cpu_seconds();
  const std::string form = normalize(marks, NormalForm::kNFC);
  EXPECT_LT(cpu_seconds() - start, 10);
  EXPECT_EQ(form.substr(0, 5), "\xe1\xba\xa1\xcc\xa3");  // a with a dot below, another dot below
}

// As in Hugging Face's library, each of the blanks that a token takes may be a token, too.
TEST(LongText, OfBlanksThatAreTokensIsEncodedInTimeThatDoesNotExplode) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"added_tokens": [{"id": 1, "content": " ", "rstrip": true, "special": true}],
          "model": {"type": "BPE", "vocab": {"x": 0}, "merges": []}})",
      "file");
  EXPECT_EQ(tokenizer.encode("x  x x", {}), (std::vector<TokenId>{0, 1, 1, 0, 1, 0}));
  const double start = cpu_seconds();
  EXPECT_EQ(tokenizer.encode(std::string(200'000, ' ') + "x", {}).size(), 200'001u);
  EXPECT_LT(cpu_seconds() - start, 10);
}

// A pattern with exponentially many steps: it must give an Error that names it, not hang or cut
// wrongly.
TEST(LongText, ThatAPatternCannotDecideIsAnError) {
  const Regex regex("(?:a|aa|aaa)+$(?<=b)", "file: pre_tokenizer.pattern.Regex");
  std::vector<Match> matches;
  try {
    regex.find_all(std::string(5'000, 'a'), matches);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find("file: pre_tokenizer.pattern.Regex: the pattern '(?:a|aa|aaa)+$(?<=b)' "
                           "failed on a text of 5000 bytes: "),
              0u)
        << message;
  }
}

TEST(LongText, NeedsNoStackOfItsLength) {
  // The group repeats for each character, and PCRE2 keeps one frame per repetition on its stack.
  const Regex regex("(?:[ab]|c)+", "file: pattern");
  std::vector<Match> matches;
  regex.find_all(std::string(300'000, 'a') + "!", matches);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].end, 300'000u);
}

}  // namespace
}  // namespace stagecraft
