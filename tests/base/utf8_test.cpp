#include "base/utf8.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Utf8, AcceptsEveryLengthOfSequence) {
  EXPECT_EQ(utf8_sequence_length("a"), 1u);
  EXPECT_EQ(utf8_sequence_length("\xc3\xa9"), 2u);
  EXPECT_EQ(utf8_sequence_length("\xe4\xbd\xa0"), 3u);
  EXPECT_EQ(utf8_sequence_length("\xf0\x9f\x98\x80"), 4u);
}

TEST(Utf8, RefusesOverlongFormsSurrogatesAndValuesBeyondUnicode) {
  EXPECT_EQ(utf8_sequence_length("\xc0\x80"), 0u);
  EXPECT_EQ(utf8_sequence_length("\xe0\x80\x80"), 0u);
  EXPECT_EQ(utf8_sequence_length("\xed\xa0\x80"), 0u);
  EXPECT_EQ(utf8_sequence_length("\xf4\x90\x80\x80"), 0u);
  EXPECT_EQ(utf8_sequence_length("\x80"), 0u);
}

TEST(Utf8, KnowsWhatATerminalWouldObey) {
  for (const char* text : {"\n", "\x1b[0m", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f",
                           "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"}) {
    EXPECT_TRUE(utf8_controls_terminal(text)) << text;
  }
  for (const char* text : {"", "a", "\xc2\xa0", "\xc3\x80", "\xe2\x80\xa9", "\xe2\x80\xaf",
                           "\xe2\x81\xa5", "\xe2\x81\xaa", "\xe4\x80\xaa", "\xc2"}) {
    EXPECT_FALSE(utf8_controls_terminal(text)) << text;
  }
}

TEST(Utf8, NamesTheOffsetOfTheFirstBrokenByte) {
  EXPECT_EQ(utf8_error_offset("plain \xc3\xa9"), std::string_view::npos);
  EXPECT_EQ(utf8_error_offset("ab\xff"
                              "cd"),
            2u);
  EXPECT_EQ(utf8_error_offset("ab\xe4\xbd"), 2u);
}

TEST(Utf8, HoldsBackOnlyTailsThatMayStillBecomeACharacter) {
  EXPECT_EQ(utf8_incomplete_tail("ab"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("ab\xe4"), 1u);
  EXPECT_EQ(utf8_incomplete_tail("ab\xe4\xbd"), 2u);
  EXPECT_EQ(utf8_incomplete_tail("\xf0\x9f\x98"), 3u);
  EXPECT_EQ(utf8_incomplete_tail("ab\xff"), 0u);
  EXPECT_EQ(utf8_incomplete_tail("\xe4\xbd\xa0"), 0u);
}

TEST(Utf8, ReplacesEachMaximalPartOfABrokenCharacterOnce) {
  const std::string kReplacement = "\xef\xbf\xbd";
  EXPECT_EQ(utf8_with_replacements("a\xc3\xa9"), "a\xc3\xa9");
  EXPECT_EQ(utf8_with_replacements("\xf0\x9f\x98"
                                   "a"),
            kReplacement + "a");
  EXPECT_EQ(utf8_with_replacements("\xe4\xbd"), kReplacement);
  EXPECT_EQ(utf8_with_replacements("\xff\xfe"), kReplacement + kReplacement);
  EXPECT_EQ(utf8_with_replacements("\xed\xa0\x80"), kReplacement + kReplacement + kReplacement);
}

}  // namespace
}  // namespace stagecraft
