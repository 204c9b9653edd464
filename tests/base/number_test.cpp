#include "base/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_text.h"
#include "tests/support/comma_locale.h"

namespace stagecraft {
namespace {

TEST(Number, IsTheWholeTextOrNothing) {
  EXPECT_EQ(number_of("0.5"), 0.5);
  EXPECT_EQ(number_of("-1e3"), -1000.0);
  EXPECT_EQ(number_of("1e400"), HUGE_VAL);
  EXPECT_EQ(number_of("1e-400"), 0.0);
  for (const std::string& text : {std::string(), std::string("0,5"), std::string("0.5 "),
                                  std::string("1e"), std::string("5\0", 2)}) {
    EXPECT_EQ(number_of(text), std::nullopt) << text;
  }
}

TEST(Number, IsADecimalOrNothing) {
  EXPECT_EQ(decimal_of("12"), 12.0);
  EXPECT_EQ(decimal_of(".5"), 0.5);
  EXPECT_EQ(decimal_of("1.5e+2"), 150.0);
  EXPECT_EQ(decimal_of("1E-3"), 0.001);
  for (const std::string text : {"", "0x10", "0X1P3", " 3", "3 ", "+3", "-3", "inf", "nan", "e5",
                                 "1e", "1-2", "1.2.3", "0,5", "."}) {
    EXPECT_EQ(decimal_of(text), std::nullopt) << text;
  }
}

TEST(Number, IsAnIntegerOrNothing) {
  EXPECT_EQ(integer_of<int>("-12"), -12);
  EXPECT_EQ(integer_of<std::size_t>("012"), 12u);
  EXPECT_EQ(integer_of<unsigned char>("fF", 16), 255);
  for (const char* text : {"", "-", "-1", "+1", " 1", "1 ", "1.0", "0x1", "256", "a"}) {
    EXPECT_EQ(integer_of<unsigned char>(text), std::nullopt) << text;
  }
}

TEST(Number, DoesNotDependOnTheHostsLocale) {
  const CommaLocale locale;
  if (!locale.is_set()) GTEST_SKIP() << "no locale with a decimal comma";
  EXPECT_EQ(number_of("0.5"), 0.5);
  EXPECT_EQ(number_of("0,5"), std::nullopt);
  EXPECT_EQ(shortest_decimal(0.8f), 0.8);
  EXPECT_EQ(json_text(0.5), "0.5");
  EXPECT_EQ(Json("0.5", "test").root().number(), 0.5);
}

}  // namespace
}  // namespace stagecraft
