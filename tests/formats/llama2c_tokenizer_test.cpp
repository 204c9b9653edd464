// The vocabulary of llama2.c gives the same ids as the tokenizer.json from which it was made.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "formats/llama2c/tokenizer.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

class Llama2cTokenizer : public testing::TestWithParam<std::string> {
 protected:
  const std::vector<TokenizerCase> cases_ = read_cases("llama2");
  const Tokenizer tokenizer_ =
      Tokenizer::open(TEST_DATA "/formats/tokenizer-" + GetParam() + ".bin");
};

INSTANTIATE_TEST_SUITE_P(BothSpellingsOfBytes, Llama2cTokenizer, testing::Values("angles", "bytes"),
                         [](const auto& instance) { return instance.param; });

TEST_P(Llama2cTokenizer, MakesTheSameIdsAndText) {
  EXPECT_GE(cases_.size(), 200u);
  for (const TokenizerCase& c : cases_) {
    EXPECT_EQ(tokenizer_.encode(c.text, {}), c.ids) << c.text;
    EXPECT_EQ(tokenizer_.encode(c.text, {.parse_special = false}), c.plain) << c.text;
    EXPECT_EQ(utf8_with_replacements(tokenizer_.decode(c.ids)), c.decoded) << c.text;
  }
  EXPECT_EQ(tokenizer_.encode("", {.add_special = true}), (std::vector<TokenId>{1}));
}

TEST(Llama2cTokenizerFile, IsFoundBesideTheModelByTheNumberOfItsTokens) {
  const TemporaryFolder folder;
  const std::filesystem::path model = folder.file("model.bin");
  EXPECT_EQ(find_llama2c_tokenizer(model, 65), std::nullopt);
  write_file(folder.file("tokenizer.bin"), "");
  EXPECT_EQ(find_llama2c_tokenizer(model, 65), folder.file("tokenizer.bin"));
  write_file(folder.file("tok65.bin"), "");
  EXPECT_EQ(find_llama2c_tokenizer(model, 65), folder.file("tok65.bin"));
  EXPECT_EQ(find_llama2c_tokenizer(model, 66), folder.file("tokenizer.bin"));
  std::filesystem::create_symlink("nothing", folder.file("tok66.bin"));  // opening it says so
  EXPECT_EQ(find_llama2c_tokenizer(model, 66), folder.file("tok66.bin"));
}

}  // namespace
}  // namespace stagecraft
