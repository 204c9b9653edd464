#include "programs/word_wrap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stagecraft {
namespace {

// The lines that a terminal shows after these bytes.
std::vector<std::string> shown(std::string_view bytes) {
  std::vector<std::string> lines(1);
  while (!bytes.empty()) {
    if (bytes.starts_with("\x1b[K")) {
      bytes.remove_prefix(3);
    } else if (bytes[0] == '\x1b') {  // n columns back; the text there is erased next
      const std::size_t end = bytes.find('D');
      const std::size_t columns = std::stoul(std::string(bytes.substr(2, end - 2)));
      lines.back().resize(lines.back().size() - columns);
      bytes.remove_prefix(end + 1);
    } else {
      if (bytes[0] == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += bytes[0];
      }
      bytes.remove_prefix(1);
    }
  }
  return lines;
}

using Lines = std::vector<std::string>;

TEST(WordWrap, MovesAWordThatReachesTheEdgeToTheNextLineWhateverThePieces) {
  const std::string text = "the cat sat on a mat";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    WordWrap wrap(10);
    std::string sent;
    for (std::size_t i = 0; i < text.size(); i += piece) sent += wrap.next(text.substr(i, piece));
    EXPECT_EQ(shown(sent), (Lines{"the cat ", "sat on a ", "mat"})) << piece;
  }
}

TEST(WordWrap, TakesTheBreakInPlaceOfASpaceAtTheEdge) {
  WordWrap wrap(8);
  EXPECT_EQ(shown(wrap.next("seven77 and")), (Lines{"seven77", "and"}));
}

TEST(WordWrap, BreaksAWordThatIsLongerThanALine) {
  WordWrap wrap(5);
  EXPECT_EQ(shown(wrap.next("abcdefghij")), (Lines{"abcd", "efgh", "ij"}));
}

TEST(WordWrap, BeginsAgainAtANewline) {
  WordWrap wrap(8);
  EXPECT_EQ(shown(wrap.next("one two\nthree")), (Lines{"one two", "three"}));
}

TEST(WordWrap, CountsColumnsAndMayBreakAfterAChineseCharacter) {
  WordWrap wrap(8);
  EXPECT_EQ(wrap.next("从前有一只狗"), "从前有\n一只狗");
}

TEST(WordWrap, LeavesTextAsItIsWhereThereIsNoTerminal) {
  WordWrap wrap(0);
  EXPECT_EQ(wrap.next("a long line\tof text"), "a long line\tof text");
}

constexpr const char* kHelp =
    "Usage: stagecraft chat [OPTIONS]\n\nOptions:\n"
    "  --top-k K=40                Choose among the K likeliest; 0: all\n";

TEST(FittedHelp, GoesOnBelowTheDescription) {
  EXPECT_EQ(fitted_help(kHelp, 50),
            "Usage: stagecraft chat [OPTIONS]\n\nOptions:\n"
            "  --top-k K=40                Choose among the K\n"
            "                              likeliest; 0: all\n");
}

TEST(FittedHelp, IsAsItIsWhereItFitsAndWhereNobodyLooks) {
  EXPECT_EQ(fitted_help(kHelp, 80), kHelp);
  EXPECT_EQ(fitted_help(kHelp, 0), kHelp);
}

TEST(FittedHelp, KeepsAWordThatIsWiderThanTheScreen) {
  EXPECT_EQ(fitted_help("aaaaaaaaaaaaaaaa bbb", 8), "aaaaaaaaaaaaaaaa bbb");
}

}  // namespace
}  // namespace stagecraft
