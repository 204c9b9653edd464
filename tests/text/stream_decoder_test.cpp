#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "tests/text/fixtures.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

const std::string kReplacement = "\xef\xbf\xbd";

TokenId id_of(const Tokenizer& tokenizer, std::string_view token) {
  return tokenizer.id_of(token).value();
}

class StreamOfBytes : public testing::Test {
 protected:
  const Tokenizer tokenizer_ = Tokenizer::open(tokenizers_folder() / "llama2");
  StreamDecoder decoder_{tokenizer_};

  std::string push(std::string_view token) { return decoder_.push(id_of(tokenizer_, token)); }
};

TEST_F(StreamOfBytes, ShowsACharacterWhenItsLastByteHasCome) {
  EXPECT_EQ(push("<0xF0>"), "");
  EXPECT_EQ(push("<0x9F>"), "");
  EXPECT_EQ(push("<0x98>"), "");
  EXPECT_EQ(push("<0x80>"), "\xf0\x9f\x98\x80");
  EXPECT_EQ(decoder_.finish(), "");
}

TEST_F(StreamOfBytes, ReplacesWhatCanBecomeNoCharacterAsSoonAsThatIsKnown) {
  EXPECT_EQ(push("<0xF0>"), "");
  EXPECT_EQ(push("<0x9F>"), "");
  EXPECT_EQ(push("<0x41>"), kReplacement + "A");
  EXPECT_EQ(push("<0xFF>"), kReplacement);
  EXPECT_EQ(push("<0xE4>"), "");
  EXPECT_EQ(decoder_.finish(), kReplacement);
}

TEST_F(StreamOfBytes, DropsTheSpaceAtTheBeginningOfATextOnly) {
  EXPECT_EQ(push("▁the"), "the");
  EXPECT_EQ(push("▁the"), " the");
  StreamDecoder continued(tokenizer_, std::vector<TokenId>{id_of(tokenizer_, "▁the")});
  EXPECT_EQ(continued.push(id_of(tokenizer_, "▁the")), " the");
}

TEST_F(StreamOfBytes, EndsACharacterThatTheContextBegan) {
  StreamDecoder continued(tokenizer_, std::vector<TokenId>{id_of(tokenizer_, "<0xC3>")});
  EXPECT_EQ(continued.push(id_of(tokenizer_, "<0xA9>")), "\xc3\xa9");
}

TEST_F(StreamOfBytes, ShowsSpecialTokensThatItIsGiven) {
  EXPECT_EQ(push("<s>"), "<s>");
  EXPECT_EQ(push("▁the"), " the");
}

TEST_F(StreamOfBytes, GivesNothingForIdsThatNoTokenHas) {
  EXPECT_EQ(decoder_.push(1'000'000), "");
  EXPECT_EQ(decoder_.push(-1), "");
  EXPECT_EQ(push("▁the"), "the");
}

TEST(StreamDecoder, OfByteLevelTokensHoldsHalfACharacterBack) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "gpt2");
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(id_of(tokenizer, "Ã")), "");
  EXPECT_EQ(decoder.push(id_of(tokenizer, "©")), "\xc3\xa9");
  EXPECT_EQ(decoder.push(id_of(tokenizer, "Ġ")), " ");
}

TEST(StreamDecoder, OfATokenizerWithoutDecoderPutsSpacesBetween) {
  const Tokenizer tokenizer = Tokenizer::open(tokenizers_folder() / "lowercase");
  StreamDecoder decoder(tokenizer);
  EXPECT_EQ(decoder.push(id_of(tokenizer, "a")), "a");
  EXPECT_EQ(decoder.push(id_of(tokenizer, "b")), " b");
}

}  // namespace
}  // namespace stagecraft
