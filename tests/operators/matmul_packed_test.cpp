// The product of stage 9, compiled without the stage's compiler flags, as in the engine. The gate
// tests it with these flags.
#include "operators/matmul_packed.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

#include "base/error.h"
#include "operators/matmul_transb.h"

namespace stagecraft {
namespace {

TEST(MatmulPacked, EqualsMatmulTransb) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  for (const auto& [m, n, k] : {std::array{1, 70, 33}, {13, 37, 41}, {6, 16, 8}, {3, 4, 0}}) {
    Matrix<float> a(m, k);
    Matrix<float> b(n, k);
    for (int i = 0; i < m * k; ++i) a.data()[i] = normal(engine);
    for (int i = 0; i < n * k; ++i) b.data()[i] = normal(engine);
    Matrix<float> c(m, n);
    Matrix<float> expected(m, n);
    matmul_packed(a.view(), pack_b(b.view()), c.view());
    matmul_transb(1.0f, a.view(), b.view(), 0.0f, expected.view());
    for (int i = 0; i < m * n; ++i) EXPECT_NEAR(c.data()[i], expected.data()[i], 1e-4) << i;
  }
}

TEST(MatmulPacked, RefusesShapesThatDisagree) {
  Matrix<float> a(2, 3);
  Matrix<float> b(4, 5);
  Matrix<float> c(2, 4);
  EXPECT_THROW(matmul_packed(a.view(), pack_b(b.view()), c.view()), Error);
}

}  // namespace
}  // namespace stagecraft
