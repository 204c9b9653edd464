#include "tensor/print.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

namespace stagecraft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <class T>
std::string shown(const T& x, std::string_view name = "x") {
  testing::internal::CaptureStdout();
  print(x, name);
  return testing::internal::GetCapturedStdout();
}

std::vector<float> counted(std::size_t n, float first, float step) {
  std::vector<float> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = first + step * static_cast<float>(i);
  return values;
}

// All lines but the first are PyTorch's own output, with set_printoptions(threshold=200).

TEST(Print, ShowsAMatrixWithItsNameAndShape) {
  const std::vector<float> x = {0.5f, -1.0f, 2.25f, kNan, 0.0f, kInf};
  EXPECT_EQ(shown(MatrixView<const float>(x.data(), 2, 3), "q"), R"(q [2, 3]
tensor([[ 0.5000, -1.0000,  2.2500],
        [    nan,  0.0000,     inf]])
)");
}

TEST(Print, FollowsRowsThatLieApart) {
  std::vector<float> x = {1.0f, 2.0f, 9.0f, 3.0f, 4.0f, 9.0f};
  EXPECT_EQ(shown(MatrixView<float>(x.data(), 2, 2, 3)), R"(x [2, 2]
tensor([[1., 2.],
        [3., 4.]])
)");
}

TEST(Print, WritesWholeNumbersShort) {
  EXPECT_EQ(shown(std::vector<float>{1.0f, 2.0f, -3.0f}), "x [3]\ntensor([ 1.,  2., -3.])\n");
  EXPECT_EQ(shown(std::vector<float>{kNan, -kInf, 0.0f, -0.0f}),
            "x [4]\ntensor([nan, -inf, 0., -0.])\n");
  EXPECT_EQ(shown(std::vector<float>{0.1f, -kInf, -kNan}),
            "x [3]\ntensor([0.1000,   -inf,    nan])\n");
}

TEST(Print, WritesPowersOfTenWhereFourDecimalsWouldHideANumber) {
  EXPECT_EQ(shown(std::vector<float>{1e-5f, 0.5f}), "x [2]\ntensor([1.0000e-05, 5.0000e-01])\n");
  EXPECT_EQ(shown(std::vector<float>{0.001f, 1.5f}), "x [2]\ntensor([1.0000e-03, 1.5000e+00])\n");
  const std::vector<float> x = {1.0f, 2000.0f, -1e9f, kNan};
  EXPECT_EQ(shown(MatrixView<const float>(x.data(), 2, 2)), R"(x [2, 2]
tensor([[ 1.0000e+00,  2.0000e+03],
        [-1.0000e+09,         nan]])
)");
}

TEST(Print, BreaksLongLines) {
  const std::vector<float> x = counted(30, 0.0f, 0.125f);
  EXPECT_EQ(shown(std::span(x)), R"(x [30]
tensor([0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
        1.1250, 1.2500, 1.3750, 1.5000, 1.6250, 1.7500, 1.8750, 2.0000, 2.1250,
        2.2500, 2.3750, 2.5000, 2.6250, 2.7500, 2.8750, 3.0000, 3.1250, 3.2500,
        3.3750, 3.5000, 3.6250])
)");
  EXPECT_EQ(shown(MatrixView<const float>(x.data(), 2, 15)), R"(x [2, 15]
tensor([[0.0000, 0.1250, 0.2500, 0.3750, 0.5000, 0.6250, 0.7500, 0.8750, 1.0000,
         1.1250, 1.2500, 1.3750, 1.5000, 1.6250, 1.7500],
        [1.8750, 2.0000, 2.1250, 2.2500, 2.3750, 2.5000, 2.6250, 2.7500, 2.8750,
         3.0000, 3.1250, 3.2500, 3.3750, 3.5000, 3.6250]])
)");
}

TEST(Print, LeavesOutTheMiddleOfALargeOne) {
  const std::vector<float> x = counted(300, -37.5f, 0.25f);
  EXPECT_EQ(shown(MatrixView<const float>(x.data(), 15, 20)), R"(x [15, 20]
tensor([[-37.5000, -37.2500, -37.0000,  ..., -33.2500, -33.0000, -32.7500],
        [-32.5000, -32.2500, -32.0000,  ..., -28.2500, -28.0000, -27.7500],
        [-27.5000, -27.2500, -27.0000,  ..., -23.2500, -23.0000, -22.7500],
        ...,
        [ 22.5000,  22.7500,  23.0000,  ...,  26.7500,  27.0000,  27.2500],
        [ 27.5000,  27.7500,  28.0000,  ...,  31.7500,  32.0000,  32.2500],
        [ 32.5000,  32.7500,  33.0000,  ...,  36.7500,  37.0000,  37.2500]])
)");
  const std::vector<float> tall = counted(250, 0.0f, 0.5f);
  EXPECT_EQ(shown(MatrixView<const float>(tall.data(), 250, 1)), R"(x [250, 1]
tensor([[  0.0000],
        [  0.5000],
        [  1.0000],
        ...,
        [123.5000],
        [124.0000],
        [124.5000]])
)");
  EXPECT_EQ(shown(counted(1000, 0.0f, 1.0f)),
            "x [1000]\ntensor([  0.,   1.,   2.,  ..., 997., 998., 999.])\n");
}

TEST(Print, ShowsWholeNumbersOwnersAndSingleNumbers) {
  Matrix<int> x(2, 2);
  x.view()(0, 0) = 1;
  x.view()(0, 1) = -20;
  x.view()(1, 0) = 300;
  EXPECT_EQ(shown(x), "x [2, 2]\ntensor([[  1, -20],\n        [300,   0]])\n");
  EXPECT_EQ(shown(1.5f, "sum"), "sum []\ntensor(1.5000)\n");
  EXPECT_EQ(shown(std::size_t{7}, "n"), "n []\ntensor(7)\n");
}

TEST(Print, ShowsWhatIsEmptyAndWhatHasNoName) {
  EXPECT_EQ(shown(MatrixView<float>(nullptr, 0, 3)), "x [0, 3]\ntensor([])\n");
  EXPECT_EQ(shown(std::span<const float>()), "x [0]\ntensor([])\n");
  EXPECT_EQ(shown(std::vector<float>{2.0f}, ""), "[1]\ntensor([2.])\n");
}

}  // namespace
}  // namespace stagecraft
