#include "base/error.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Printable, EscapesWhatWouldChangeATerminalAndCutsLongText) {
  EXPECT_EQ(printable("model.layers.0"), "model.layers.0");
  EXPECT_EQ(printable("a\x1b[31m\n\xff"), "a\\x1b[31m\\x0a\\xff");
  EXPECT_EQ(printable("\xe4\xbd\xa0"), "\xe4\xbd\xa0");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), std::string(10, 'x') + "...");
}

}  // namespace
}  // namespace stagecraft
