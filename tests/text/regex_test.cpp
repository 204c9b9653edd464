#include "text/pipeline/regex.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stagecraft {
namespace {

// The parts of `text`, matches in brackets.
std::string cut(std::string_view pattern, const std::string& text) {
  std::vector<Match> matches;
  Regex(pattern, "pattern").find_all(text, matches);
  std::string out;
  for (const Match& match : matches) {
    const std::string part = text.substr(match.begin, match.end - match.begin);
    out += match.matched ? "[" + part + "]" : part;
  }
  return out;
}

TEST(Regex, CoversTheTextWithMatchesAndWhatIsBetween) {
  EXPECT_EQ(cut("b+", "abbcb"), "a[bb]c[b]");
  EXPECT_EQ(cut("x", "abc"), "abc");
  EXPECT_EQ(cut("x", ""), "");
  EXPECT_EQ(cut(".", "\xc3\xa9\xe5\xad\x97"), "[\xc3\xa9][\xe5\xad\x97]");
}

TEST(Regex, MatchesEmptyOnlyWhereNoMatchHasJustEnded) {
  EXPECT_EQ(cut("", "ab"), "[]a[]b[]");
  EXPECT_EQ(cut("b*", "abbc"), "[]a[bb]c[]");
  EXPECT_EQ(cut("(?=b)", "abb"), "a[]b[]b");
}

TEST(Regex, TakesBlanksFromUnicodesWhiteSpace) {
  EXPECT_EQ(cut(R"(\s)", "a\xc2\x85\xe3\x80\x80"), "a[\xc2\x85][\xe3\x80\x80]");
  EXPECT_EQ(cut(R"(\s)", "\xe1\xa0\x8e"), "\xe1\xa0\x8e");  // U+180E: not white space since 6.3
  EXPECT_EQ(cut(R"([^\sa]+)",
                "a \xe1\xa0\x8e"
                "b"),
            "a [\xe1\xa0\x8e"
            "b]");
  EXPECT_EQ(cut(R"(\S+)", "\xe1\xa0\x8e b"), "[\xe1\xa0\x8e] [b]");
}

TEST(Regex, TakesMarksIntoWords) {
  EXPECT_EQ(cut(R"(\w+)", "e\xcc\x81t\xe2\x82\x82"), "[e\xcc\x81t]\xe2\x82\x82");  // a subscript
  EXPECT_EQ(cut(R"(\b)", "e\xcc\x81 a"), "[]e\xcc\x81[] []a[]");
}

// As Oniguruma does.
TEST(Regex, TakesFractionsAndSuperscriptsIntoWordsOnlyOutsideOfClasses) {
  EXPECT_EQ(cut(R"(\w+)", "a½²b³!"), "[a½²b³]!");
  EXPECT_EQ(cut(R"([\w]+)", "a½²b³!"), "[a]½²[b]³!");
  EXPECT_EQ(cut(R"([^\w\s]+)", "a½²b³!"), "a[½²]b[³!]");
  EXPECT_EQ(cut(R"([[:word:]]+)", "a½b"), "[a]½[b]");
}

TEST(Regex, TakesAScriptWithoutWhatItShares) {
  EXPECT_EQ(cut(R"(\p{Hiragana}+)", "か。"),
            "[か]。");  // Script_Extensions would take the full stop
  EXPECT_EQ(cut(R"(\P{Han}+)", "か字"), "[か]字");
}

TEST(Regex, ReadsLettersOfTheDialectAsItMeansThem) {
  EXPECT_EQ(cut(R"(\h+)", "xbeef \t"), "x[beef] \t");
  EXPECT_EQ(cut(R"((?m)a.b)", "a\nb"), "[a\nb]");
  EXPECT_EQ(cut(R"(^b$)", "a\nb\nc"), "a\n[b]\nc");
  EXPECT_EQ(cut(R"(\u00e9)", "\xc3\xa9"), "[\xc3\xa9]");
  EXPECT_EQ(cut(R"(\v)", "\n\v"), "\n[\v]");
  EXPECT_EQ(cut(R"([\]\[]+)", "a[]b"), "a[[]]b");
  EXPECT_EQ(cut(R"([[:punct:][:digit:]]+)", "a+1.b"), "a[+1.]b");
}

TEST(Regex, RefusesWhatItWouldGetWrong) {
  for (const char* pattern : {"[a[b]]", "[a&&b]", R"([\W])", R"([\H])", "[[:alpha:]]",
                              "[[:^space:]]", "[[:", R"(\u12)", R"(\C)", "(", "[a"}) {
    EXPECT_THROW(Regex(pattern, "pattern"), Error) << pattern;
  }
}

}  // namespace
}  // namespace stagecraft
