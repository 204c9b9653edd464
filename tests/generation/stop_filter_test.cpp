#include "generation/stop_filter.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

// The text that a reader sees if `text` is fed in pieces of `size` bytes.
std::string shown(const std::vector<std::string>& stops, const std::string& text,
                  std::size_t size) {
  StopFilter filter(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size() && !filter.stopped(); at += size) {
    out += filter.push(text.substr(at, size));
  }
  return filter.stopped() ? out : out + filter.finish();
}

TEST(StopFilter, EndsAtTheFirstStopTextHoweverTheStreamIsCut) {
  for (std::size_t size = 1; size <= 20; ++size) {
    EXPECT_EQ(shown({"END"}, "a story ENDless", size), "a story ");
    EXPECT_EQ(shown({"sun", "moon"}, "the moon, the sun", size), "the ");
    EXPECT_EQ(shown({"aab"}, "aaab", size), "a");
    EXPECT_EQ(shown({"ending", "x"}, "the ending", size), "the ");  // holds back for either
    EXPECT_EQ(shown({"x", "ending"}, "the ending", size), "the ");
    EXPECT_EQ(shown({"never"}, "nothing nev", size), "nothing nev");
    EXPECT_EQ(shown({""}, "text", size), "text");
  }
}

TEST(StopFilter, HoldsBackOnlyWhatMayStillBeAStopText) {
  StopFilter filter({"END"});
  EXPECT_EQ(filter.push("the E"), "the ");
  EXPECT_EQ(filter.push("N"), "");
  EXPECT_EQ(filter.push("d"), "ENd");
  EXPECT_FALSE(filter.stopped());
}

TEST(StopFilter, ShowsNothingAfterAStopText) {
  StopFilter filter({"END"});
  EXPECT_EQ(filter.push("the END of"), "the ");
  EXPECT_TRUE(filter.stopped());
  EXPECT_EQ(filter.push("a story"), "");
  EXPECT_EQ(filter.finish(), "");
}

}  // namespace
}  // namespace stagecraft
