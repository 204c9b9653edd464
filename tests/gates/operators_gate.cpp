// The gates of stages 0 to 3. A suite is a group of points in stages.json.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/gates/exact.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

// ---- 0 ------------------------------------------------------------------------------------------

TEST(Add, AddsXToY) {
  Inputs inputs;
  for (const std::vector<std::size_t>& shape :
       std::vector<std::vector<std::size_t>>{{3, 7}, {1, 1}, {5, 33}, {0, 4}}) {
    const Tensor x = inputs.tensor(shape);
    const Tensor y = inputs.tensor(shape);
    Case one{"y += x", {"add", {{"x", x}, {"y", y}}, {}}, {{"y", twin_add(exact(x), exact(y))}}};
    one.request.gap = 2;
    if (!judge(one)) return;
  }
}

// ---- 1 ------------------------------------------------------------------------------------------

Case silu_case(const std::string& name, const Tensor& x) {
  return {name, {"silu", {{"x", x}}, {}}, {{"y", twin_silu(exact(x))}}};
}

// A dump's tolerance is measured over sums, of which these have none: what formulas of the sigmoid
// may differ by is in the twin.
Case with_tolerance_of(const Expected& twin, Case one) {
  Expected& expected = one.expected.at("y");
  for (std::size_t i = 0; i < expected.allowed.size(); ++i) {
    expected.allowed[i] = std::max(expected.allowed[i], twin.allowed[i]);
  }
  return one;
}

TEST(Silu, EqualsPyTorch) {
  for (const Case& one : dumped_cases("silu")) {
    const Expected twin = twin_silu(exact(one.request.inputs.at("x")));
    if (!judge(with_tolerance_of(twin, one)) && IsSkipped()) return;
  }
}

TEST(Silu, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  for (const std::size_t n : {std::size_t{1}, inputs.size(2, 40), inputs.size(100, 300)}) {
    Case one = silu_case("n = " + std::to_string(n), inputs.tensor({n}, 4.0f));
    one.request.calls = 2;
    if (!judge(one)) return;
  }
}

TEST(Silu, IsZeroNotNanFarBelowZero) {
  judge(silu_case("large negative numbers", {{4}, {-100.0f, -1000.0f, -3e38f, -89.0f}}));
}

TEST(Silu, AllowsYToBeX) {
  Case one = silu_case("y is x", Inputs().tensor({37}, 3.0f));
  one.request.alias = "x";
  judge(one);
}

TEST(Silu, AllowsNothing) { judge(silu_case("n = 0", {{0}, {}})); }

Case swiglu_case(const std::string& name, const Tensor& gate, const Tensor& up) {
  return {name,
          {"swiglu", {{"gate", gate}, {"up", up}}, {}},
          {{"y", twin_swiglu(exact(gate), exact(up))}}};
}

TEST(Swiglu, EqualsPyTorch) {
  for (const Case& one : dumped_cases("swiglu")) {
    const auto& inputs = one.request.inputs;
    const Expected twin = twin_swiglu(exact(inputs.at("gate")), exact(inputs.at("up")));
    if (!judge(with_tolerance_of(twin, one)) && IsSkipped()) return;
  }
}

TEST(Swiglu, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  const std::size_t n = inputs.size(20, 90);
  Case one = swiglu_case("n = " + std::to_string(n), inputs.tensor({n}, 3.0f), inputs.tensor({n}));
  one.request.calls = 2;
  judge(one);
}

TEST(Swiglu, AllowsYToBeGateOrUp) {
  Inputs inputs;
  for (const char* alias : {"gate", "up"}) {
    Case one = swiglu_case(std::string("y is ") + alias, inputs.tensor({21}), inputs.tensor({21}));
    one.request.alias = alias;
    if (!judge(one)) return;
  }
}

// ---- 2 ------------------------------------------------------------------------------------------

Case rms_norm_case(const std::string& name, const Tensor& x, const Tensor& weight, double eps) {
  return {name,
          {"rms_norm", {{"x", x}, {"weight", weight}}, {{"eps", eps}}},
          {{"y", twin_rms_norm(exact(x), weight, static_cast<double>(static_cast<float>(eps)))}}};
}

TEST(RmsNorm, EqualsPyTorch) { judge_dumps("rms_norm"); }

TEST(RmsNorm, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  const std::size_t dim = inputs.size(30, 200);
  Case one = rms_norm_case("one row of " + std::to_string(dim), inputs.tensor({1, dim}, 2.0f),
                           inputs.tensor({dim}), 1e-5);
  one.request.calls = 2;
  judge(one);
}

TEST(RmsNorm, AddsEpsToTheMeanSquareInsideTheRoot) {
  Inputs inputs;
  judge(rms_norm_case("eps = 0.5", inputs.tensor({2, 9}), inputs.tensor({9}), 0.5));
}

TEST(RmsNormRows, TreatsEveryRowAlone) {
  Inputs inputs;
  const std::size_t rows = inputs.size(3, 6);
  const std::size_t dim = inputs.size(20, 70);
  Tensor x = inputs.tensor({rows, dim});
  for (std::size_t i = 0; i < dim; ++i) x.values[i] *= 50.0f;  // rows of different size
  judge(rms_norm_case("rows of different size", x, inputs.tensor({dim}), 1e-6));
}

TEST(RmsNormRows, GoesFromRowToRowByTheStride) {
  Inputs inputs;
  Case one =
      rms_norm_case("rows that lie apart", inputs.tensor({4, 13}), inputs.tensor({13}), 1e-5);
  one.request.gap = 5;
  judge(one);
}

TEST(RmsNormRows, AllowsYToBeX) {
  Inputs inputs;
  Case one = rms_norm_case("y is x", inputs.tensor({3, 17}), inputs.tensor({17}), 1e-5);
  one.request.alias = "x";
  judge(one);
}

TEST(RmsNormRows, AllowsNoRows) {
  judge(rms_norm_case("no rows", {{0, 8}, {}}, filled({8}, 1.0f), 1e-5));
}

// ---- 3 ------------------------------------------------------------------------------------------

Case matmul_case(const std::string& name, double alpha, const Tensor& a, const Tensor& b,
                 double beta, const Tensor& c) {
  return {name,
          {"matmul_transb", {{"a", a}, {"b", b}, {"c", c}}, {{"alpha", alpha}, {"beta", beta}}},
          {{"c", twin_matmul_transb(alpha, exact(a), b, beta, c)}}};
}

bool is_plain(const Case& one) {
  return one.request.scalars.at("alpha") == 1.0 && one.request.scalars.at("beta") == 0.0;
}

TEST(MatmulTransb, EqualsPyTorch) { judge_dumps("matmul_transb", is_plain); }

TEST(MatmulTransb, EqualsItsTwinOnFreshNumbers) {
  Inputs inputs;
  const std::size_t m = inputs.size(2, 9);
  const std::size_t n = inputs.size(10, 40);
  const std::size_t k = inputs.size(41, 90);
  Case one = matmul_case("A·Bᵀ", 1.0, inputs.tensor({m, k}), inputs.tensor({n, k}), 0.0,
                         filled({m, n}, 7.0f));
  one.request.calls = 2;
  judge(one);
}

TEST(MatmulTransb, IsNotAnElementwiseProductOfSquares) {
  Inputs inputs;
  judge(matmul_case("5x5x5", 1.0, inputs.tensor({5, 5}), inputs.tensor({5, 5}), 0.0,
                    filled({5, 5}, 0.0f)));
}

TEST(MatmulTransbAlphaBeta, EqualsPyTorch) {
  judge_dumps("matmul_transb", [](const Case& one) { return !is_plain(one); });
}

TEST(MatmulTransbAlphaBeta, ScalesTheProductByAlphaAndTheOldCByBeta) {
  Inputs inputs;
  judge(matmul_case("alpha = -1.5, beta = 0.75", -1.5, inputs.tensor({4, 19}),
                    inputs.tensor({6, 19}), 0.75, inputs.tensor({4, 6}, 5.0f)));
}

TEST(MatmulTransbAlphaBeta, NeverReadsCWhereBetaIsZero) {
  Inputs inputs;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  judge(matmul_case("NaN in C, beta = 0", 2.0, inputs.tensor({3, 8}), inputs.tensor({4, 8}), 0.0,
                    filled({3, 4}, nan)));
}

TEST(MatmulTransbViews, GoesFromRowToRowByTheStride) {
  Inputs inputs;
  Case one = matmul_case("rows that lie apart", 1.0, inputs.tensor({3, 11}), inputs.tensor({5, 11}),
                         0.0, filled({3, 5}, 0.0f));
  one.request.gap = 3;
  judge(one);
}

TEST(MatmulTransbViews, AllowsEverySizeToBeZero) {
  Inputs inputs;
  judge(matmul_case("m = 0", 1.0, {{0, 4}, {}}, inputs.tensor({3, 4}), 0.0, {{0, 3}, {}}));
  judge(matmul_case("n = 0", 1.0, inputs.tensor({3, 4}), {{0, 4}, {}}, 0.0, {{3, 0}, {}}));
  judge(matmul_case("k = 0: C = beta * C", 1.0, {{2, 0}, {}}, {{3, 0}, {}}, 0.5,
                    inputs.tensor({2, 3})));
}

}  // namespace
}  // namespace stagecraft::stages
