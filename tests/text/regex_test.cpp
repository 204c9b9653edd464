#include "text/pipeline/regex.h"

#include <algorithm>

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

// As Oniguruma does: + is possessive only after *, + or ?, and ? after {n} makes it optional.
TEST(Regex, RepeatsARepetitionInBraces) {
  EXPECT_EQ(cut("a{1,2}+", "baaaaab"), "b[aaaaa]b");
  EXPECT_EQ(cut("a{2}+", "baaaaab"), "b[aaaa]ab");
  EXPECT_EQ(cut("a{2,}+a", "baaaaab"), "b[aaaaa]b");
  EXPECT_EQ(cut("xa{2}?", "xaaxaxx"), "[xaa][x]a[x][x]");
  EXPECT_EQ(cut("xa{2}??", "xaa"), "[x]aa");
  EXPECT_EQ(cut("xa{1,2}?", "xaa"), "[xa]a");  // lazy
  EXPECT_EQ(cut("xa{,2}", "xaaaxx"), "[xaa]a[x][x]");
  EXPECT_EQ(cut(R"(x(?:a|\)|b[)}{]){2}+)", "xab}a)x"), "[xab}a)]x");
  EXPECT_EQ(cut("[ab]{2}+", "abab"), "[abab]");
  EXPECT_EQ(cut("é{2}+", "éééé"), "[éééé]");
  EXPECT_EQ(cut(R"(\p{L}{2}+\x{61})", "xyzya"), "[xyzya]");
  EXPECT_EQ(cut("a{2}+?b", "aaaab"), "[aaaab]");
  EXPECT_EQ(cut("a*{2}+b", "aaaab"), "[aaaab]");
  EXPECT_EQ(cut("a{2}{2}+b", "aaaaaaaab"), "[aaaaaaaab]");
  EXPECT_EQ(cut("a{1,2}?+b", "aaaab"), "[aaaab]");
  EXPECT_EQ(cut("xa{2}*", "xaaaaa"), "[xaaaa]a");
  EXPECT_EQ(cut("a+*b", "aab"), "[aab]");
  EXPECT_EQ(cut("{{2}+", "{{{{{"), "[{{{{]{");
  EXPECT_EQ(cut("a{|{,}|{x}|{1", "a{{,}{x}{1"), "[a{][{,}][{x}][{1]");
}

// PCRE2 sees only a part of a long text at first. That changes no match: each copy of a text in the
// middle of others has the same number of matches.
TEST(Regex, FindsTheSameInALongText) {
  const std::string text = "ab'll \xc3\xa9\xe2\x82\xac 12345  x \n\n  c_d 1,234,567 e\t f!? #";
  for (const char* pattern :
       {R"('ll| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", R"(\b\w+\b)", "x$", "(?<=,)2",
        R"(\d{1,3}(?=(?:\d{3})*\b))", R"(\s*\n|\S+ ?)", "[a-z]*", "#(?=ab)", "#(?!ab)", "zz"}) {
    const auto count = [&](int copies) {
      std::string all;
      for (int i = 0; i < copies; ++i) all += text;
      std::vector<Match> parts;
      Regex(pattern, "pattern").find_all(all, parts);
      return std::ranges::count(parts, true, &Match::matched);
    };
    EXPECT_EQ(count(200), count(2) + 198 * (count(3) - count(2))) << pattern;
  }
}

TEST(Regex, ReadsALongWordButNotForEachOfItsLetters) {
  const std::string word(1'000'000, 'a');
  std::vector<Match> matches;
  Regex(R"(\w+\s|\w+)", "pattern").find_all(word, matches);
  EXPECT_EQ(matches.size(), 1u);
  EXPECT_THROW(Regex(R"(\w+\s|\w)", "pattern").find_all(word, matches), Error);
  EXPECT_THROW(
      Regex(R"(\d{1,3}(?=(?:\d{3})*\b))", "pattern").find_all(std::string(1'000'000, '1'), matches),
      Error);
}

TEST(Regex, RefusesWhatItWouldGetWrong) {
  for (const char* pattern :
       {"(?x)a {2}+", "{,2}", "a{3,2}", "[a[b]]", "[a&&b]", R"([\W])", R"([\H])", "[[:alpha:]]",
        "[[:^space:]]", "[[:", R"(\u12)", R"(\C)", "(", "[a"}) {
    EXPECT_THROW(Regex(pattern, "pattern"), Error) << pattern;
  }
  std::string many = "a";
  for (int i = 0; i < 200'000; ++i) many += "{2}";
  EXPECT_THROW(Regex(many, "pattern"), Error);
}

}  // namespace
}  // namespace stagecraft
