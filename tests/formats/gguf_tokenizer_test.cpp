// The vocabulary in a GGUF file gives the same ids as the tokenizer.json from which it was made.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/utf8.h"
#include "formats/gguf/file.h"
#include "formats/gguf/pre_tokenizers.h"
#include "formats/gguf/tokenizer.h"
#include "tests/text/fixtures.h"
#include "tests/text/pieces_of.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

class GgufTokenizer : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<TokenizerCase> cases_ = read_cases(GetParam());
  const Tokenizer tokenizer_ = Tokenizer::open(TEST_DATA "/gguf/tokenizer-" + GetParam() + ".gguf");
};

INSTANTIATE_TEST_SUITE_P(Every, GgufTokenizer,
                         testing::Values("gemma4", "gpt2", "llama2", "llama3", "qwen2", "smollm"),
                         [](const auto& instance) { return instance.param; });

TEST_P(GgufTokenizer, MakesTheSameIds) {
  EXPECT_GE(cases_.size(), 200u);
  for (const TokenizerCase& c : cases_) {
    EXPECT_EQ(tokenizer_.encode(c.text, {}), c.ids) << c.text;
    EXPECT_EQ(tokenizer_.encode(c.text, {.parse_special = false}), c.plain) << c.text;
  }
}

TEST_P(GgufTokenizer, PutsTheSameTokensAroundAText) {
  for (const TokenizerCase& c : cases_) {
    std::vector<TokenId> expected = c.before;
    expected.insert(expected.end(), c.ids.begin(), c.ids.end());
    expected.insert(expected.end(), c.after.begin(), c.after.end());
    EXPECT_EQ(tokenizer_.encode(c.text, {.add_special = true}), expected) << c.text;
  }
}

TEST_P(GgufTokenizer, DecodesTheSameText) {
  for (const TokenizerCase& c : cases_) {
    EXPECT_EQ(utf8_with_replacements(tokenizer_.decode(c.ids)), c.decoded) << c.text;
  }
}

TEST(GgufTokenizerKinds, TellControlFromUserDefinedAndUnused) {
  const Tokenizer tokenizer = Tokenizer::open(TEST_DATA "/gguf/whole.gguf");
  EXPECT_TRUE(tokenizer.is_special(1));
  const auto two_spaces = tokenizer.id_of("  ");  // user-defined
  ASSERT_TRUE(two_spaces.has_value());
  EXPECT_FALSE(tokenizer.is_special(*two_spaces));
  EXPECT_EQ(tokenizer.encode("a  b", {.parse_special = false}).at(1), *two_spaces);
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{*two_spaces}), "  ");
  EXPECT_FALSE(tokenizer.id_of("[PAD0]").has_value());
  EXPECT_EQ(tokenizer.vocab_size(), static_cast<std::size_t>(*two_spaces) + 1);  // unused: the rest
}

// If an added token is missing from the vocabulary, the tokenizers library gives it the next id
// after the vocabulary, whatever id the file says.
TEST_P(GgufTokenizer, IsWrittenWithAnAddedTokenInTheVocabularyOrBehindIt) {
  const GgufFile file(TEST_DATA "/gguf/tokenizer-" + GetParam() + ".gguf");
  const auto json = json_value(json_text(describe_gguf_tokenizer(file.metadata()).root()));
  const auto& vocabulary = json.at("model").at("vocab");
  if (!vocabulary.is_object()) GTEST_SKIP() << "a list, whose order is the ids";
  std::size_t next = vocabulary.size();
  for (const auto& token : json.at("added_tokens")) {
    const auto found = vocabulary.find(token.at("content").get<std::string>());
    EXPECT_EQ(token.at("id"), found != vocabulary.end() ? found->get<std::size_t>() : next++)
        << token;
  }
}

// Compares each name with the tokenizers library (reference/make_gguf.py).
TEST(GgufPreTokenizers, CutAsTheLibraryCuts) {
  std::size_t n_names = 0;
  for (const auto& line : read_json_lines(TEST_DATA "/gguf/pre_tokenizers.jsonl")) {
    for (const std::string name : line.at("names")) {
      ++n_names;
      const GgufPreTokenizer* found = find_gguf_pre_tokenizer(name);
      ASSERT_NE(found, nullptr) << name;
      const Json document(found->pre_tokenizer, name);
      const auto cutter = PreTokenizer::read(document.root());
      for (const auto& c : line.at("cases")) {
        EXPECT_EQ(pieces_of(*cutter, c.at(0)), c.at(1).get<std::vector<std::string>>())
            << name << " of " << c.at(0);
      }
    }
  }
  EXPECT_EQ(n_names, 29u);
  EXPECT_EQ(find_gguf_pre_tokenizer("klingon"), nullptr);
}

}  // namespace
}  // namespace stagecraft
