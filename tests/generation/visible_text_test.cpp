#include "generation/visible_text.h"

#include <gtest/gtest.h>

#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

class VisibleTextTest : public testing::Test {
 protected:
  TokenId id(std::string_view token) const { return tokenizer_.id_of(token).value(); }

  TinyChatModel folder_;
  Tokenizer tokenizer_ = Tokenizer::open(folder_.folder());
};

TEST_F(VisibleTextTest, ShowsAtTheEndWhatCouldHaveBecomeAStopText) {
  VisibleText text(tokenizer_, {}, {"ox"});
  EXPECT_EQ(text.push(id("f")), "f");
  EXPECT_EQ(text.push(id("o")), "");
  EXPECT_EQ(text.finish(), "o");
  EXPECT_FALSE(text.stopped());
}

TEST_F(VisibleTextTest, CountsCharactersThatItHoldsBack) {
  VisibleText text(tokenizer_, {}, {"fox"});
  EXPECT_EQ(text.push(id("f")), "");
  EXPECT_EQ(text.characters(), 1u);
  EXPECT_EQ(text.push(id("Ã")), "");  // the byte 0xc3
  EXPECT_EQ(text.characters(), 1u);
  EXPECT_EQ(text.push(id("©")), "fé");
  EXPECT_EQ(text.characters(), 2u);
}

TEST_F(VisibleTextTest, ShowsAtTheEndAReplacementForHalfACharacter) {
  VisibleText text(tokenizer_, {}, {"\xef\xbf\xbdx"});
  EXPECT_EQ(text.push(id("Ã")), "");  // the byte 0xc3
  EXPECT_EQ(text.finish(), "\xef\xbf\xbd");
}

TEST_F(VisibleTextTest, HasNoTextForSpecialTokensAndNoneFromAStopTextOn) {
  VisibleText text(tokenizer_, {}, {"x"});
  EXPECT_EQ(text.push(id("<|im_start|>")), "");
  EXPECT_EQ(text.push(id("a")), "a");
  EXPECT_EQ(text.push(id("x")), "");
  EXPECT_TRUE(text.stopped());
  EXPECT_EQ(text.finish(), "");
}

}  // namespace
}  // namespace stagecraft
