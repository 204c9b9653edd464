// The gates of stages 0 to 3. A suite is a group of points in stages.json.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/ranges.h>

#include "tests/gates/exact.h"
#include "tests/gates/questions.h"

namespace stagecraft::stages {
namespace {

std::string shape_name(const std::vector<std::size_t>& shape) {
  return fmt::format("{}", fmt::join(shape, " x "));
}

// ---- 0 ------------------------------------------------------------------------------------------

using Shape = std::vector<std::size_t>;

Case add_case(const std::string& name, const Tensor& x, const Tensor& y) {
  Case one{name, {"add", {{"x", x}, {"y", y}}, {}}, {{"y", exact_add(exact(x), exact(y))}}};
  one.request.gap = 2;
  return one;
}

TEST(Add, AddsTheExampleByHand) { judge(add_case(kByHand, {{1, 2}, {1, 2}}, {{1, 2}, {10, 20}})); }

TEST(Add, AddsXToY) {
  Inputs inputs;
  for (const Shape& shape : std::vector<Shape>{{3, 7}, {1, 1}, {5, 33}, {0, 4}}) {
    if (!judge(add_case("y += x", inputs.tensor(shape), inputs.tensor(shape)))) return;
  }
}

TEST(Add, AddsMatricesOfEverySize) {
  Inputs inputs;
  for (const Shape& shape : std::vector<Shape>{{66'001, 1}, {2, 5003}, {301, 127}}) {
    Case one = add_case(shape_name(shape), inputs.tensor(shape), inputs.tensor(shape, 100.0f));
    one.request.gap = shape[0] == 2 ? 6001 : 1;
    if (!judge(one)) return;
  }
}

TEST(Add, KeepsNothing) {
  Inputs inputs;
  const Shape shapes[] = {{2, 9}, {7, 40}, {90, 101}};
  judge_together([&](std::size_t size) {
    return add_case("", inputs.tensor(shapes[size]), inputs.tensor(shapes[size]));
  });
}

// ---- 1 ------------------------------------------------------------------------------------------

Case silu_case(const std::string& name, const Tensor& x) {
  return {name, {"silu", {{"x", x}}, {}}, {{"y", exact_silu(exact(x))}}};
}

// The tolerance in a dump is measured over sums, which these functions do not have. The tolerance
// here comes from the f64 formula, which allows for different formulas of the sigmoid.
Case with_tolerance_of(const Expected& formula, Case one) {
  Expected& expected = one.expected.at("y");
  for (std::size_t i = 0; i < expected.allowed.size(); ++i) {
    expected.allowed[i] = std::max(expected.allowed[i], formula.allowed[i]);
  }
  return one;
}

TEST(Silu, EqualsTheExampleByHand) { judge(silu_case(kByHand, {{5}, {-2, -1, 0, 1, 2}})); }

TEST(Silu, EqualsPyTorch) {
  for (const Case& one : dumped_cases("silu")) {
    const Expected formula = exact_silu(exact(one.request.inputs.at("x")));
    if (!judge(with_tolerance_of(formula, one))) return;
  }
}

TEST(Silu, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  for (const std::size_t n : {std::size_t{1}, inputs.odd_size(9, 40), inputs.odd_size(100, 300),
                              std::size_t{128}, std::size_t{66'001}}) {
    const Tensor x = inputs.tensor({n}, 4.0f);
    const auto [low, high] = std::ranges::minmax(x.values);
    must_show(n < 100 || (low < -4.0f && high > 4.0f), "numbers far from 0 on both sides");
    Case one = silu_case("n = " + std::to_string(n), x);
    one.request.calls = 2;
    if (!judge(one)) return;
  }
}

// exp(-x) overflows for every second number.
Tensor with_large_negatives() {
  Tensor x = Inputs().tensor({48});
  for (std::size_t i = 0; i < x.values.size(); i += 2) {
    x.values[i] = -89.0f * std::exp(std::fabs(x.values[i]));
  }
  x.values[6] = -3e38f;
  return x;
}

TEST(Silu, IsZeroNotNanFarBelowZero) {
  judge(silu_case("large negative numbers", with_large_negatives()));
}

TEST(Silu, IsXFarAboveZero) {
  Tensor x = Inputs().tensor({48});
  for (std::size_t i = 0; i < x.values.size(); i += 2) {
    x.values[i] = 89.0f * std::exp(std::fabs(x.values[i]));
  }
  x.values[6] = 3e38f;
  judge(silu_case("large numbers", x));
}

TEST(Silu, KeepsNothing) {
  Inputs inputs;
  // No multiple of 4 or 8: SIMD code must handle the rest.
  const std::size_t sizes[] = {11, 303, 20'011};
  judge_together(
      [&](std::size_t size) { return silu_case("", inputs.tensor({sizes[size]}, 4.0f)); });
}

TEST(Silu, AllowsYToBeX) {
  Case one = silu_case("y and x are the same memory", Inputs().tensor({37}, 3.0f));
  one.request.alias = "x";
  judge(one);
}

TEST(Silu, AllowsNothing) { judge(silu_case("n = 0", {{0}, {}})); }

Case swiglu_case(const std::string& name, const Tensor& gate, const Tensor& up) {
  return {name,
          {"swiglu", {{"gate", gate}, {"up", up}}, {}},
          {{"y", exact_swiglu(exact(gate), exact(up))}}};
}

TEST(Swiglu, EqualsTheExampleByHand) { judge(swiglu_case(kByHand, {{1}, {1}}, {{1}, {3}})); }

TEST(Swiglu, EqualsPyTorch) {
  for (const Case& one : dumped_cases("swiglu")) {
    const auto& inputs = one.request.inputs;
    const Expected formula = exact_swiglu(exact(inputs.at("gate")), exact(inputs.at("up")));
    if (!judge(with_tolerance_of(formula, one))) return;
  }
}

TEST(Swiglu, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  for (const std::size_t n : {inputs.odd_size(20, 90), std::size_t{64}, std::size_t{66'001}}) {
    Case one =
        swiglu_case("n = " + std::to_string(n), inputs.tensor({n}, 3.0f), inputs.tensor({n}));
    one.request.calls = 2;
    if (!judge(one)) return;
  }
}

TEST(Swiglu, IsZeroNotNanFarBelowZero) {
  judge(swiglu_case("large negative gates", with_large_negatives(), Inputs().tensor({48}, 0.5f)));
}

TEST(Swiglu, KeepsNothing) {
  Inputs inputs;
  // No multiple of 4 or 8: SIMD code must handle the rest.
  const std::size_t sizes[] = {11, 303, 20'011};
  judge_together([&](std::size_t size) {
    return swiglu_case("", inputs.tensor({sizes[size]}, 3.0f), inputs.tensor({sizes[size]}));
  });
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
          {{"y", exact_rms_norm(exact(x), weight, static_cast<double>(static_cast<float>(eps)))}}};
}

TEST(RmsNorm, EqualsTheExampleByHand) {
  judge(rms_norm_case(kByHand, {{1, 4}, {1, -2, 2, 0}}, filled({4}, 1.0f), 1e-5));
}

TEST(RmsNorm, EqualsPyTorch) { judge_dumps("rms_norm"); }

TEST(RmsNorm, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  for (const std::size_t dim : {inputs.odd_size(30, 200), std::size_t{64}, std::size_t{9001}}) {
    Case one = rms_norm_case("one row of " + std::to_string(dim), inputs.tensor({1, dim}, 2.0f),
                             inputs.tensor({dim}), 1e-5);
    one.request.calls = 2;
    if (!judge(one)) return;
  }
}

TEST(RmsNorm, OfZerosIsZeros) {
  judge(rms_norm_case("zeros", filled({1, 24}, 0.0f), Inputs().tensor({24}), 1e-6));
}

TEST(RmsNorm, AddsEpsToTheMeanSquareInsideTheRoot) {
  Inputs inputs;
  if (!judge(rms_norm_case("eps = 0.5", inputs.tensor({2, 9}), inputs.tensor({9}), 0.5))) return;
  judge(rms_norm_case("eps = 1e-12, and small numbers", inputs.tensor({2, 9}, 1e-5f),
                      inputs.tensor({9}), 1e-12));
}

TEST(RmsNormRows, TreatsEveryRowAlone) {
  Inputs inputs;
  const std::size_t rows = inputs.size(3, 6);
  const std::size_t dim = inputs.odd_size(20, 70);
  Tensor x = inputs.tensor({rows, dim});
  for (std::size_t i = 0; i < dim; ++i) x.values[i] *= 50.0f;  // rows of different magnitude
  judge(rms_norm_case("rows of different size", x, inputs.tensor({dim}), 1e-6));
}

TEST(RmsNormRows, GiveAloneWhatTheyGiveAmongMany) {
  Inputs inputs;
  for (const auto& [rows, dim] : {std::pair{9u, 333u}, {301u, 65u}}) {
    const std::string name =
        rows == 9 ? "each row alone" : fmt::format("each of {} rows alone", rows);
    const Case one = rms_norm_case(name, inputs.tensor({rows, dim}), inputs.tensor({dim}), 1e-5);
    if (!judge_rows_alone(one, "y")) return;
  }
}

TEST(RmsNormRows, GoesFromRowToRowByTheStride) {
  Inputs inputs;
  Case one = rms_norm_case("rows with gaps between them", inputs.tensor({4, 13}),
                           inputs.tensor({13}), 1e-5);
  one.request.gap = 5;
  judge(one);
}

TEST(RmsNormRows, TakesThousandsOfRows) {
  Inputs inputs;
  Case one = rms_norm_case("5003 rows", inputs.tensor({5003, 11}), inputs.tensor({11}), 1e-5);
  one.request.gap = 23;
  judge(one);
}

TEST(RmsNormRows, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[][2] = {{2, 9}, {3, 60}, {50, 333}};
  judge_together([&](std::size_t size) {
    const auto& [rows, dim] = sizes[size];
    const double eps = 0.01 * static_cast<double>(inputs.size(1, 100));
    return rms_norm_case("", inputs.tensor({rows, dim}), inputs.tensor({dim}), eps);
  });
}

TEST(RmsNormRows, AllowsYToBeX) {
  Inputs inputs;
  Case one = rms_norm_case("y and x are the same memory", inputs.tensor({3, 17}),
                           inputs.tensor({17}), 1e-5);
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
          {{"c", exact_matmul_transb(alpha, exact(a), b, beta, c)}}};
}

bool is_plain(const Case& one) {
  return one.request.scalars.at("alpha") == 1.0 && one.request.scalars.at("beta") == 0.0;
}

Case product_by_hand(double alpha, double beta, float old_c) {
  return matmul_case(kByHand, alpha, {{2, 2}, {1, 2, 0, 1}}, {{2, 2}, {3, 4, 5, 6}}, beta,
                     filled({2, 2}, old_c));
}

TEST(MatmulTransb, EqualsTheExampleByHand) { judge(product_by_hand(1.0, 0.0, 7.0f)); }

TEST(MatmulTransb, EqualsPyTorch) { judge_dumps("matmul_transb", is_plain); }

TEST(MatmulTransb, EqualsTheReferenceOnFreshNumbers) {
  Inputs inputs;
  const std::size_t m = inputs.size(2, 9);
  const std::size_t n = inputs.size(10, 40);
  const std::size_t k = inputs.odd_size(41, 90);
  Case one = matmul_case("A·Bᵀ", 1.0, inputs.tensor({m, k}), inputs.tensor({n, k}), 0.0,
                         filled({m, n}, 7.0f));
  one.request.calls = 2;
  judge(one);
}

Case sized_product(Inputs& inputs, std::size_t m, std::size_t n, std::size_t k, double alpha = 1.0,
                   double beta = 0.0) {
  return matmul_case(fmt::format("m = {}, n = {}, k = {}", m, n, k), alpha, inputs.tensor({m, k}),
                     inputs.tensor({n, k}), beta, inputs.tensor({m, n}));
}

TEST(MatmulTransb, TakesThousandsOfRowsColumnsAndProducts) {
  Inputs inputs;
  const std::size_t sizes[][3] = {
      {3, 5, 9001}, {5003, 3, 4}, {2, 5003, 5}, {151, 263, 301}, {1, 65'601, 2}};
  for (const auto& [m, n, k] : sizes) {
    if (!judge(sized_product(inputs, m, n, k))) return;
  }
}

// As in the engine, each thread has its own columns of C.
TEST(MatmulTransb, KeepsNothing) {
  Inputs inputs;
  const std::size_t sizes[][3] = {{2, 3, 7}, {4, 33, 65}, {20, 90, 301}};
  judge_together([&](std::size_t size) {
    const auto& [m, n, k] = sizes[size];
    return sized_product(inputs, m, n, k);
  });
}

TEST(MatmulTransb, IsNotAnElementwiseProductOfSquares) {
  Inputs inputs;
  judge(matmul_case("5x5x5", 1.0, inputs.tensor({5, 5}), inputs.tensor({5, 5}), 0.0,
                    filled({5, 5}, 0.0f)));
}

TEST(MatmulTransbAlphaBeta, EqualsTheExampleByHand) { judge(product_by_hand(2.0, 1.0, 1.0f)); }

TEST(MatmulTransbAlphaBeta, EqualsPyTorch) {
  judge_dumps("matmul_transb", [](const Case& one) { return !is_plain(one); });
}

TEST(MatmulTransbAlphaBeta, ScalesTheProductByAlphaAndTheOldCByBeta) {
  Inputs inputs;
  judge(matmul_case("alpha = -1.5, beta = 0.75", -1.5, inputs.tensor({4, 19}),
                    inputs.tensor({6, 19}), 0.75, inputs.tensor({4, 6}, 5.0f)));
}

TEST(MatmulTransbAlphaBeta, TakesATinyBetaForWhatItIs) {
  Inputs inputs;
  judge(matmul_case("alpha = 1, beta = 1e-8", 1.0, inputs.tensor({4, 19}), inputs.tensor({6, 19}),
                    1e-8, inputs.tensor({4, 6}, 1e9f)));
}

TEST(MatmulTransbAlphaBeta, TakesThousandsAndKeepsNothing) {
  Inputs inputs;
  if (!judge(sized_product(inputs, 3, 2003, 70, -0.5, 2.0))) return;
  if (!judge(sized_product(inputs, 2003, 3, 70, 3.0, 1.0))) return;
  const std::size_t sizes[][3] = {{2, 3, 7}, {4, 33, 65}, {20, 50, 101}};
  judge_together([&](std::size_t size) {
    const auto& [m, n, k] = sizes[size];
    const auto factor = [&] { return 0.25 * static_cast<double>(inputs.size(1, 20)); };
    const double alpha = factor();
    return sized_product(inputs, m, n, k, alpha, factor());
  });
}

TEST(MatmulTransbAlphaBeta, NeverReadsCWhereBetaIsZero) {
  Inputs inputs;
  Tensor c = inputs.tensor({4, 9});
  for (std::size_t i = 0; i < c.values.size(); i += 2) c.values[i] = i % 4 == 0 ? NAN : INFINITY;
  if (!judge(matmul_case("NaN and infinity in C, k = 0, beta = 0", 2.0, {{4, 0}, {}}, {{9, 0}, {}},
                         0.0, c))) {
    return;
  }
  if (!judge(matmul_case("NaN and infinity in C, beta = 0", 2.0, inputs.tensor({4, 8}),
                         inputs.tensor({9, 8}), 0.0, c))) {
    return;
  }
  // If beta is not 0, they must stay: a result without them would hide that C is broken.
  judge(matmul_case("NaN and infinity in C, beta = 1", 2.0, inputs.tensor({4, 8}),
                    inputs.tensor({9, 8}), 1.0, c));
}

TEST(MatmulTransbViews, GoesFromRowToRowByTheStride) {
  Inputs inputs;
  Case one = matmul_case("rows with gaps between them", 1.0, inputs.tensor({3, 11}),
                         inputs.tensor({5, 11}), 0.0, filled({3, 5}, 0.0f));
  one.request.gap = 3;
  if (!judge(one)) return;
  one = sized_product(inputs, 4, 6, 37);
  one.name = "rows with large gaps between them, " + one.name;
  one.request.gap = 4001;
  judge(one);
  one = sized_product(inputs, 4, 21, 37);
  one.name = "rows of wider matrices, " + one.name;
  one.request.gap = 8;
  one.request.wider = true;
  judge(one);
}

TEST(MatmulTransbViews, GiveAnElementAloneAsAmongMany) {
  Inputs inputs;
  const std::size_t sizes[][3] = {{9, 21, 301}, {301, 3, 70}, {3, 301, 70}};
  for (const auto& [m, n, k] : sizes) {
    Case one = sized_product(inputs, m, n, k);
    one.name = "each element of C alone, " + one.name;
    if (!judge_rows_alone(one, "c")) return;
  }
}

TEST(MatmulTransbViews, TakesThousandsOfRowsThatLieApart) {
  Inputs inputs;
  const std::size_t sizes[][3] = {{2, 3, 3001}, {3001, 3, 5}, {2, 3001, 5}};
  for (const auto& [m, n, k] : sizes) {
    Case one = sized_product(inputs, m, n, k);
    one.name = "rows of wider matrices, " + one.name;
    one.request.gap = 7;
    one.request.wider = true;
    if (!judge(one)) return;
  }
}

TEST(MatmulTransbViews, AllowsEverySizeToBeZero) {
  Inputs inputs;
  judge(matmul_case("m = 0", 1.0, {{0, 4}, {}}, inputs.tensor({3, 4}), 0.0, {{0, 3}, {}}));
  judge(matmul_case("n = 0", 1.0, inputs.tensor({3, 4}), {{0, 4}, {}}, 0.0, {{3, 0}, {}}));
  judge(matmul_case("k = 0: C = beta * C", 1.0, {{3, 0}, {}}, {{5, 0}, {}}, 0.5,
                    inputs.tensor({3, 5})));
}

}  // namespace
}  // namespace stagecraft::stages
