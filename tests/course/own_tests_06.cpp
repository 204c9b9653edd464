// A student's own tests of stage 6: a my_tests.cpp is linked with the stage's functions and with
// our plain operators, not with those that record their results for a worker.
#include <gtest/gtest.h>

#include <vector>

#include "operators/rms_norm.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

TEST(Softmax, MakesSharesOfARow) {
  std::vector<float> row(4, 1.0f);
  softmax(row, row);
  EXPECT_EQ(row, std::vector<float>(4, 0.25f));
}

TEST(RmsNorm, IsTheOneOfStageTwo) {
  const std::vector<float> x = {3.0f, -3.0f}, weight = {1.0f, 2.0f};
  std::vector<float> y(2);
  rms_norm({x.data(), 1, 2}, weight, 0.0f, {y.data(), 1, 2});
  EXPECT_EQ(y, (std::vector<float>{1.0f, -2.0f}));
}

}  // namespace
}  // namespace stagecraft
