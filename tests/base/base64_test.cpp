#include "base/base64.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Base64, GivesTheBytesOfTheStandardsExamples) {  // RFC 4648, section 10
  for (const auto& [text, bytes] : {std::pair{"", ""},
                                    {"Zg==", "f"},
                                    {"Zm8=", "fo"},
                                    {"Zm9v", "foo"},
                                    {"Zm9vYg==", "foob"},
                                    {"Zm9vYmE=", "fooba"}}) {
    EXPECT_EQ(bytes_of_base64(text), bytes);
  }
  EXPECT_EQ(bytes_of_base64("AP/+"), std::string("\0\xff\xfe", 3));
}

TEST(Base64, RefusesWhatNoWriterWrites) {
  for (const char* text :
       {"Zg=", "Zg", "Z===", "====", "Zm9v=", "Zh==", "Z g=", "Zm9vYg==Zg==", "-_-_"}) {
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace stagecraft
