#include "serve/loopback.h"

#include <gtest/gtest.h>

namespace stagecraft {
namespace {

TEST(Loopback, IsWhatMeansThisMachine) {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.0.0.2", "127.255.255.254",
                           "127.1", "::1", "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"", "127.evil.example", "127.0.0.1.evil.example",
                           "127.0.0.1 evil.example", "localhost.evil", "128.0.0.1", "0.0.0.0",
                           "::", "::2", "[::1]", "127.0.0.256", "127.", "example.com"}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(Loopback, KnowsTheAddressesThatStandForAll) {
  for (const char* host : {"*", "0.0.0.0", "0", "0.0", "::", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(is_any_address(host)) << host;
  }
  for (const char* host : {"", "127.0.0.1", "::1", "0 ", "0.example", "localhost", "10.0.0.0"}) {
    EXPECT_FALSE(is_any_address(host)) << host;
  }
}

}  // namespace
}  // namespace stagecraft
