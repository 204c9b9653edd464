#include "tensor/matrix.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace stagecraft {
namespace {

TEST(Matrix, StartsAsZerosAlignedToACacheLine) {
  for (const std::size_t cols : {1u, 7u, 33u}) {
    const Matrix<float> matrix(5, cols);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(matrix.data()) % 64, 0u);
    for (std::size_t r = 0; r < 5; ++r) {
      for (const float value : matrix.view().row(r)) EXPECT_EQ(value, 0.0f);
    }
  }
}

TEST(Matrix, LeavesNothingBehindWhenMovedFrom) {
  Matrix<int> from(2, 3);
  from.view()(1, 2) = 42;
  Matrix<int> to = std::move(from);
  EXPECT_EQ(to.view()(1, 2), 42);
  EXPECT_EQ(from.data(), nullptr);
  EXPECT_EQ(from.rows(), 0u);
}

TEST(Matrix, RefusesSizesThatMultiplyBeyondMemory) {
  EXPECT_THROW(Matrix<float>(SIZE_MAX / 2, 3), std::bad_alloc);
  EXPECT_THROW(Matrix<float>(1, SIZE_MAX), std::bad_alloc);
}

TEST(Matrix, AllowsEitherSizeToBeZero) {
  EXPECT_TRUE(Matrix<float>(0, 8).view().empty());
  EXPECT_TRUE(Matrix<float>(8, 0).view().empty());
}

TEST(MatrixView, RangesOfRowsAndColumnsShareTheMemory) {
  Matrix<int> matrix(3, 4);
  int n = 0;
  for (std::size_t r = 0; r < 3; ++r) {
    for (int& value : matrix.view().row(r)) value = n++;
  }
  const auto part = matrix.view().row_range(1, 2).col_range(2, 2);
  EXPECT_EQ(part.rows(), 2u);
  EXPECT_EQ(part.cols(), 2u);
  EXPECT_EQ(part(0, 0), 6);
  EXPECT_EQ(part(1, 1), 11);
  part(1, 0) = -1;
  EXPECT_EQ(matrix.view()(2, 2), -1);
}

}  // namespace
}  // namespace stagecraft
