// What library_test.cpp does not test for a sentencepiece model: the files beside it.
#include <gtest/gtest.h>

#include <filesystem>

#include <fmt/format.h>

#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"
#include "tests/text/fixtures.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

class Sentencepiece : public testing::Test {
 protected:
  Sentencepiece() {
    std::filesystem::copy_file(tokenizers_folder() / "spm_bpe" / "tokenizer.model",
                               folder_.path() / "tokenizer.model");
  }

  std::vector<TokenId> around_nothing() const {
    return Tokenizer::open(folder_.path()).encode("", {.add_special = true});
  }

  std::string refusal() const {
    const std::string error = error_of([&] { Tokenizer::open(folder_.path()); });
    return error.substr(error.empty() ? 0 : folder_.path().string().size());
  }

  TemporaryFolder folder_;
};

TEST_F(Sentencepiece, IsReadWhereThereIsNoTokenizerJson) {
  const Tokenizer tokenizer = Tokenizer::open(folder_.path());
  EXPECT_EQ(tokenizer.algorithm(), "BPE");
  EXPECT_EQ(tokenizer.id_of("</s>"), 2);
  std::filesystem::copy_file(tokenizers_folder() / "unigram" / "tokenizer.json",
                             folder_.path() / "tokenizer.json");
  EXPECT_EQ(Tokenizer::open(folder_.path()).algorithm(), "Unigram");
}

TEST_F(Sentencepiece, PutsItsBeginTokenBeforeATextUnlessItsConfigSaysOtherwise) {
  EXPECT_EQ(around_nothing(), (std::vector<TokenId>{1}));
  folder_.write("tokenizer_config.json", R"({"add_bos_token": false})");
  EXPECT_EQ(around_nothing(), (std::vector<TokenId>{}));
  folder_.write("tokenizer_config.json", R"({"add_bos_token": null, "add_eos_token": true})");
  EXPECT_EQ(around_nothing(), (std::vector<TokenId>{1, 2}));
}

TEST_F(Sentencepiece, HasTheTokensThatWereAddedSince) {
  const auto size = static_cast<TokenId>(Tokenizer::open(folder_.path()).vocab_size());
  folder_.write("added_tokens.json", fmt::format(R"({{"<|im_end|>": {}}})", size));
  {
    const Tokenizer tokenizer = Tokenizer::open(folder_.path());
    EXPECT_EQ(tokenizer.encode("<|im_end|>", {}), (std::vector<TokenId>{size}));
    EXPECT_TRUE(tokenizer.is_special(size));
    EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{size}), "<|im_end|>");
  }
  folder_.write("tokenizer_config.json",
                fmt::format(R"({{"added_tokens_decoder": {{"{}": {{"content": "word", )"
                            R"("special": false, "lstrip": true}}}}}})",
                            size));
  const Tokenizer tokenizer = Tokenizer::open(folder_.path());
  EXPECT_EQ(tokenizer.encode("  word", {}), (std::vector<TokenId>{size}));
  EXPECT_FALSE(tokenizer.is_special(size));
}

TEST_F(Sentencepiece, NamesALinkToNothing) {
  for (const char* name : {"added_tokens.json", "tokenizer_config.json", "tokenizer.json"}) {
    std::filesystem::create_symlink("../blobs/7f3a", folder_.path() / name);
    EXPECT_EQ(refusal(),
              fmt::format("/{}: is a link to '../blobs/7f3a', which does not exist", name));
    std::filesystem::remove(folder_.path() / name);
  }
}

TEST_F(Sentencepiece, RefusesAConfigThatContradictsIt) {
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"3x": {"content": "a"}}})");
  EXPECT_EQ(
      refusal(),
      "/tokenizer_config.json: added_tokens_decoder.3x: expected a token id as its key, found an "
      "object");
  folder_.write("tokenizer_config.json", R"({"added_tokens_decoder": {"2": {"content": "</t>"}}})");
  EXPECT_EQ(refusal(),
            "/tokenizer.model: added tokens: [2].id: expected a unique id for '</t>', found 2, "
            "which '</s>' has in model.vocab");
}

}  // namespace
}  // namespace stagecraft
