// Each rung of docs/kernels.md, on each instruction set that this processor runs, compared with the
// textbook product.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "operators/kernels/panel_matrix.h"
#include "operators/matmul_transb.h"

namespace stagecraft {
namespace {

struct Shape {
  std::size_t rows, outputs, inputs;
};

// Random numbers, and NaN after the last: a kernel that reads further must not use it.
struct Numbers {
  std::size_t rows, cols;
  std::vector<float> values;

  Numbers(std::size_t n_rows, std::size_t n_cols, unsigned seed)
      : rows(n_rows), cols(n_cols), values(rows * cols + 64, std::nanf("")) {
    std::mt19937 engine(seed);
    std::normal_distribution<float> normal;
    for (std::size_t i = 0; i < rows * cols; ++i) values[i] = normal(engine);
  }
  MatrixView<const float> view() const { return {values.data(), rows, cols}; }
  const float* row(std::size_t r) const { return values.data() + r * cols; }
};

std::vector<float> product_of_dots(float (*dot)(const float*, const float*, std::size_t),
                                   const Numbers& a, const Numbers& b) {
  std::vector<float> c;
  for (std::size_t r = 0; r < a.rows; ++r) {
    for (std::size_t o = 0; o < b.rows; ++o) c.push_back(dot(a.row(r), b.row(o), a.cols));
  }
  return c;
}

// The product by the engine's own tiles, at most `most` rows at a time.
std::vector<float> product_of_tiles(const Kernels& k, std::size_t most, const Numbers& a,
                                    const Numbers& b) {
  const StoredTensor weight{
      "b", DType::F32, {b.rows, b.cols}, std::as_bytes(std::span(b.values).first(b.rows * b.cols))};
  std::vector<std::byte> panel(panel_bytes(WeightLayout::F32, b.cols));
  std::vector<float> c(a.rows * b.rows), out(most * kPanelOutputs);
  for (std::size_t first = 0; first < b.rows; first += kPanelOutputs) {
    pack_panel(weight, WeightLayout::F32, first, panel);
    const std::size_t width = std::min(kPanelOutputs, b.rows - first);
    for (std::size_t r = 0; r < a.rows; r += most) {
      const std::size_t n = std::min(most, a.rows - r);
      k.matmul(WeightLayout::F32)
          .tile({panel.data(), b.cols, a.row(r), a.cols, nullptr, nullptr, 0, out.data(),
                 kPanelOutputs},
                n);
      for (std::size_t i = 0; i < n; ++i) {
        std::copy_n(&out[i * kPanelOutputs], width, &c[(r + i) * b.rows + first]);
      }
    }
  }
  return c;
}

class EveryLadder : public testing::TestWithParam<const Kernels*> {};

TEST_P(EveryLadder, GivesTheTextbooksProductOnEveryRung) {
  const Kernels& k = *GetParam();
  for (const auto& [rows, outputs, inputs] :
       {Shape{1, 1, 1}, {2, 3, 15}, {1, 5, 33}, {5, 33, 77}, {13, 45, 130}, {3, 31, 331}}) {
    const Numbers a(rows, inputs, 1), b(outputs, inputs, 2);
    Matrix<float> expected(rows, outputs);
    matmul_transb(1.0f, a.view(), b.view(), 0.0f, expected.view());
    std::vector<std::vector<float>> rungs;
    for (const auto dot : k.dot) rungs.push_back(product_of_dots(dot, a, b));
    rungs.push_back(product_of_tiles(k, 1, a, b));
    rungs.push_back(product_of_tiles(k, k.matmul(WeightLayout::F32).max_rows, a, b));

    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t o = 0; o < outputs; ++o) {
        // If n products are added in any order, the error of the sum is at most n u / (1 - n u)
        // times the sum of their magnitudes, where u is half a unit in the last place (Higham,
        // Accuracy and Stability, 3.1). Two such sums may have errors in opposite directions.
        double magnitude = 0.0;
        for (std::size_t i = 0; i < inputs; ++i) {
          magnitude += std::abs(static_cast<double>(a.row(r)[i]) * b.row(o)[i]);
        }
        const double nu = static_cast<double>(inputs) * 0x1p-24;
        for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
          ASSERT_NEAR(rungs[rung][r * outputs + o], expected.data()[r * outputs + o],
                      2.0 * nu / (1.0 - nu) * magnitude)
              << "rung " << rung << ", " << inputs << " inputs, row " << r << ", output " << o;
        }
      }
    }
  }
}

TEST_P(EveryLadder, SumsNothingToZero) {
  for (const auto dot : GetParam()->dot) EXPECT_EQ(dot(nullptr, nullptr, 0), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Isa, EveryLadder, testing::ValuesIn(runnable_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name); });

}  // namespace
}  // namespace stagecraft
