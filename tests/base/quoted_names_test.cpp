#include "base/quoted_names.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(QuotedNames, ReplacesEachNameAndNothingElse) {
  const auto rename = [](const std::string& name) { return name == "a" ? "blk.0.a" : name; };
  EXPECT_EQ(rename_quoted("'a': expected as many as 'b' or 'a', found a", "", rename),
            "'blk.0.a': expected as many as 'b' or 'blk.0.a', found a");
  EXPECT_EQ(rename_quoted("it's/m: 'a' is missing", "it's/m", rename),
            "it's/m: 'blk.0.a' is missing");
  EXPECT_EQ(rename_quoted("no name", "", rename), "no name");
  EXPECT_EQ(rename_quoted("'a' and 'a", "", rename), "'blk.0.a' and 'a");
  EXPECT_EQ(rename_quoted("", "file", rename), "");
}

}  // namespace
}  // namespace stagecraft
