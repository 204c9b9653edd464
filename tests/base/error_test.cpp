#include "base/error.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Printable, EscapesWhatWouldChangeATerminalAndCutsLongText) {
  EXPECT_EQ(printable("model.layers.0"), "model.layers.0");
  EXPECT_EQ(printable("a\x1b[31m\n\xff"), "a\\x1b[31m\\x0a\\xff");
  EXPECT_EQ(printable("\xe4\xbd\xa0"), "\xe4\xbd\xa0");
  EXPECT_EQ(printable("a\xc2\x9b\xe2\x80\xae"), "a\\xc2\\x9b\\xe2\\x80\\xae");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), std::string(10, 'x') + "...");
}

TEST(Error, IsOneLineWhateverItQuotes) {
  EXPECT_STREQ(Error("tensor '{}'", "a\nb\x1b[31m").what(), "tensor 'a\\x0ab\\x1b[31m'");
  EXPECT_STREQ(Error(std::string("a\nb")).what(), "a\\x0ab");
  EXPECT_STREQ(Error("{}", std::string(300, 'x')).what(), std::string(300, 'x').c_str());
}

}  // namespace
}  // namespace stagecraft
