// What the operators' headers promise beyond the formula: aliasing, strides, lengths, errors, and
// that a row gives the same bits alone as among other rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/error.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/clamped_swiglu.h"
#include "operators/exact_gelu.h"
#include "operators/gated_delta.h"
#include "operators/gelu_tanh.h"
#include "operators/half_to_float.h"
#include "operators/layer_norm.h"
#include "operators/matmul_transb.h"
#include "operators/neighbour_rope.h"
#include "operators/relu.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"
#include "operators/route.h"
#include "operators/scaled_attention.h"
#include "operators/short_conv.h"
#include "operators/sigmoid.h"
#include "operators/silu.h"
#include "operators/softmax.h"
#include "operators/swiglu.h"
#include "tests/support/same_bits.h"

namespace stagecraft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> numbers(std::size_t n, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::vector<float> values(n);
  for (float& value : values) value = static_cast<float>(engine()) * 0x1p-30f - 2.0f;
  return values;
}

Matrix<float> matrix(std::size_t rows, std::size_t cols, unsigned seed = 1) {
  Matrix<float> result(rows, cols);
  const std::vector<float> values = numbers(rows * cols, seed);
  std::copy(values.begin(), values.end(), result.data());
  return result;
}

// Sizes shorter than, equal to and no multiple of any vector register.
constexpr std::size_t kLengths[] = {0, 1, 7, 8, 33, 130};

// Taps 1, 10 and 100 show which rows were read: the last tap is that of the row itself.
TEST(ShortConv, SumsTheLastRowsInAnyCuts) {
  const float taps[] = {1.0f, 10.0f, 100.0f}, bias[] = {0.5f};
  const float x[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f};
  const float expected[] = {100.5f, 210.5f, 321.5f, 432.5f, 543.5f};
  for (std::size_t cut = 0; cut <= 5; ++cut) {
    Matrix<float> state(2, 1), y(5, 1);
    const MatrixView<const float> rows(x, 5, 1), weights(taps, 1, 3);
    short_conv(rows.row_range(0, cut), weights, bias, state.view(), y.view().row_range(0, cut));
    short_conv(rows.row_range(cut, 5 - cut), weights, bias, state.view(),
               y.view().row_range(cut, 5 - cut));
    EXPECT_TRUE(std::equal(expected, expected + 5, y.data())) << cut;
    EXPECT_EQ(state.view()(0, 0), 4.0f);
    EXPECT_EQ(state.view()(1, 0), 5.0f);
  }
}

// Two keys of length 1 at right angles. beta = 0 corrects half of the difference; rate and decay
// are chosen so that S is halved: exp(-exp(0) * softplus(0)) = 1 / 2.
TEST(GatedDelta, FadesCorrectsAndReadsInAnyCuts) {
  const float in[] = {
      1, 0, 1, 0, 8,  // q, k, v: S = [4, 0]
      1, 0, 0, 1, 6,  // S = [2, 3]
      0, 1, 1, 0, 8,  // S = [1 + (8 - 1) / 2, 1.5]
  };
  const float expected[] = {4.0f, 2.0f, 1.5f}, zeros[] = {0.0f, 0.0f, 0.0f};
  const DeltaShape shape{.n_heads = 1, .n_key_heads = 1, .key_dim = 2, .value_dim = 1};
  const float root = std::sqrt(2.0f);  // q is divided by it
  for (std::size_t cut = 0; cut <= 3; ++cut) {
    Matrix<float> state(2, 1), out(3, 1);
    const MatrixView<const float> rows(in, 3, 5), zero(zeros, 3, 1);
    const auto run = [&](std::size_t first, std::size_t n) {
      const auto none = zero.row_range(first, n);
      gated_delta(rows.row_range(first, n), none, none, {zeros, 1}, {zeros, 1}, shape, state.view(),
                  out.view().row_range(first, n));
    };
    run(0, cut);
    run(cut, 3 - cut);
    for (std::size_t t = 0; t < 3; ++t) {
      EXPECT_NEAR(root * out.view()(t, 0), expected[t], 1e-4f) << cut << ", " << t;
    }
    EXPECT_NEAR(state.view()(0, 0), 4.5f, 1e-4f);
  }
}

// e^1000 is too large for f32, and exp(-exp(-80) * 1000) is 1.
TEST(GatedDelta, KeepsANumberFrom0To1HoweverLargeTheDecay) {
  for (const float rate : {-80.0f, 0.0f, 80.0f}) {
    for (const float decay : {-1000.0f, 0.0f, 19.0f, 21.0f, 1000.0f}) {
      const float kept = delta_kept(decay, rate);
      EXPECT_TRUE(kept >= 0.0f && kept <= 1.0f) << decay << ", " << rate;
    }
  }
  EXPECT_EQ(delta_kept(1000.0f, -80.0f), 1.0f);
  EXPECT_EQ(delta_kept(1000.0f, 0.0f), 0.0f);
}

TEST(ElementwiseOperators, MayWriteOverTheirInput) {
  for (const std::size_t n : kLengths) {
    const std::vector<float> x = numbers(n);
    const std::vector<float> up = numbers(n, 2);
    std::vector<float> y(n);
    std::vector<float> over = x;

    silu(x, y);
    silu(over, over);
    EXPECT_TRUE(same_bits(over, y)) << "silu " << n;

    exact_gelu(x, y);
    over = x;
    exact_gelu(over, over);
    EXPECT_TRUE(same_bits(over, y)) << "gelu " << n;

    gelu_tanh(x, y);
    over = x;
    gelu_tanh(over, over);
    EXPECT_TRUE(same_bits(over, y)) << "gelu_tanh " << n;

    swiglu(x, up, y);
    over = x;
    swiglu(over, up, over);
    EXPECT_TRUE(same_bits(over, y)) << "swiglu over gate " << n;
    over = up;
    swiglu(x, over, over);
    EXPECT_TRUE(same_bits(over, y)) << "swiglu over up " << n;

    softmax(x, y);
    over = x;
    softmax(over, over);
    EXPECT_TRUE(same_bits(over, y)) << "softmax " << n;
  }
}

TEST(RmsNorm, MayWriteOverItsInput) {
  const Matrix<float> x = matrix(3, 33);
  Matrix<float> y(3, 33);
  Matrix<float> over = matrix(3, 33);
  const std::vector<float> weight = numbers(33, 5);
  rms_norm(x.view(), weight, 0.5f, y.view());
  rms_norm(over.view(), weight, 0.5f, over.view());
  EXPECT_TRUE(same_bits({over.data(), 99}, {y.data(), 99}));
}

TEST(LayerNorm, MayWriteOverItsInputAndRowsDoNotDependOnSeqLen) {
  Matrix<float> x = matrix(5, 33);
  const std::vector<float> weight = numbers(33, 5), bias = numbers(33, 6);
  Matrix<float> all(5, 33);
  Matrix<float> one(1, 33);
  layer_norm(x.view(), weight, bias, 0.5f, all.view());
  for (std::size_t r = 0; r < 5; ++r) {
    layer_norm(x.view().row_range(r, 1), weight, bias, 0.5f, one.view());
    EXPECT_TRUE(same_bits(one.view().row(0), all.view().row(r)));
  }
  layer_norm(x.view(), weight, bias, 0.5f, x.view());
  EXPECT_TRUE(same_bits({x.data(), 165}, {all.data(), 165}));
}

TEST(LayerNorm, WithoutWeightOrBiasIsThatOfOnesAndZeros) {
  const Matrix<float> x = matrix(5, 33);
  const std::vector<float> ones(33, 1.0f), zeros(33);
  Matrix<float> plain(5, 33), same(5, 33);
  layer_norm(x.view(), {}, {}, 0.5f, plain.view());
  layer_norm(x.view(), ones, zeros, 0.5f, same.view());
  EXPECT_TRUE(same_bits({plain.data(), 165}, {same.data(), 165}));
}

TEST(Relu, CutsOffBelowZeroAndKeepsWhatIsNoNumber) {
  const std::vector<float> x = {-2.0f, -0.0f, 0.0f, 3.0f, kInfinity, -kInfinity, kNan};
  std::vector<float> y(x.size());
  relu(x, y);
  const std::vector<float> expected = {0.0f, 0.0f, 0.0f, 3.0f, kInfinity, 0.0f};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]) << x[i];
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST(Route, KeepsTheLargestAndOfEqualOnesTheFirst) {
  const auto routed = [](std::vector<float> routing_weights, std::size_t n, bool normed) {
    route(routing_weights, {.n_chosen = n, .normed = normed});
    return routing_weights;
  };
  const std::vector<float> routing_weights = {0.125f, 0.25f, 0.125f, 0.25f, 0.125f, 0.125f};
  using Row = std::vector<float>;
  EXPECT_EQ(routed(routing_weights, 1, false), (Row{0.0f, 0.25f, 0.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(routed(routing_weights, 3, false), (Row{0.125f, 0.25f, 0.0f, 0.25f, 0.0f, 0.0f}));
  EXPECT_EQ(routed(routing_weights, 4, false), (Row{0.125f, 0.25f, 0.125f, 0.25f, 0.0f, 0.0f}));
  EXPECT_EQ(routed(routing_weights, 2, true), (Row{0.0f, 0.5f, 0.0f, 0.5f, 0.0f, 0.0f}));
  EXPECT_EQ(routed(routing_weights, 6, false), routing_weights);
}

// The bias decides which experts are chosen, but is not added to their routing_weights. Groups of
// two: the second one has the largest number, the third one the largest sum.
TEST(Route, ChoosesWithABiasAndInGroups) {
  const auto routed = [](Routing how) {
    std::vector<float> routing_weights = {0.125f, 0.125f, 0.5f, 0.0f, 0.375f, 0.25f};
    route(routing_weights, how);
    return routing_weights;
  };
  const std::vector<float> bias = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
  using Row = std::vector<float>;
  EXPECT_EQ(routed({.n_chosen = 2, .bias = bias}), (Row{0.125f, 0.0f, 0.5f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(routed({.n_chosen = 1, .scale = 2.0f}), (Row{0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(routed({.n_chosen = 1, .groups = {.n = 3, .n_counted = 2}}),
            (Row{0.0f, 0.0f, 0.0f, 0.0f, 0.375f, 0.0f}));
  EXPECT_EQ(routed({.n_chosen = 2, .normed = true, .groups = {.n = 3}}),
            (Row{0.0f, 0.0f, 1.0f, 0.0f, 0.0f, 0.0f}));
  EXPECT_EQ(routed({.n_chosen = 1, .bias = bias, .groups = {.n = 3, .n_counted = 2}}),
            (Row{0.125f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f}));
}

TEST(ClampedSwiglu, KeepsBothFactorsInARangeAndWhatIsNoNumber) {
  const std::vector<float> gate = {9.0f, 1.0f, -9.0f, 1.0f, kNan, 1.0f};
  const std::vector<float> up = {0.0f, 9.0f, 0.0f, -9.0f, 1.0f, kNan};
  std::vector<float> y(gate.size());
  clamped_swiglu(gate, up, 0.5f, 2.0f, y);
  const auto expected = [](double g, double u) {
    return g / (1.0 + std::exp(-0.5 * g)) * (u + 1.0);
  };
  EXPECT_NEAR(y[0], expected(2, 0), 1e-6);
  EXPECT_NEAR(y[1], expected(1, 2), 1e-6);
  EXPECT_NEAR(y[2], expected(-9, 0), 1e-6);
  EXPECT_NEAR(y[3], expected(1, -2), 1e-6);
  EXPECT_TRUE(std::isnan(y[4]) && std::isnan(y[5]));
}

TEST(Route, TheOthersAreZeroWhereTheSumOfTheChosenIsNoNumber) {
  std::vector<float> routing_weights = {0.5f, kNan, 0.25f, 0.125f};
  route(routing_weights, {.n_chosen = 2, .normed = true});
  EXPECT_EQ(std::ranges::count(routing_weights, 0.0f), 2);
  EXPECT_TRUE(std::isnan(routing_weights[0]) && std::isnan(routing_weights[1]));
  std::vector<float> none(4, 0.0f);
  route(none, {.n_chosen = 2, .normed = true});
  EXPECT_EQ(none, std::vector<float>(4, 0.0f));
}

// The bias only chooses. But if it is NaN, the weights are broken, and the result shows it.
TEST(Route, AnExpertChosenByABiasThatIsNoNumberHasNoNumber) {
  const std::vector<float> bias = {0.0f, kNan, 0.0f, 0.0f};
  for (const bool normed : {false, true}) {
    std::vector<float> routing_weights = {0.5f, 0.125f, 0.25f, 0.125f};
    route(routing_weights, {.n_chosen = 2, .normed = normed, .bias = bias});
    EXPECT_TRUE(std::isnan(routing_weights[1]));
    EXPECT_EQ(std::isnan(routing_weights[0]), normed);
    EXPECT_EQ(std::ranges::count(routing_weights, 0.0f), 2);
  }
}

// NaN is not lost, and never more experts are chosen than n_chosen.
TEST(Route, ChoosesWhatIsNoNumberFirst) {
  std::vector<float> routing_weights = {0.5f, kNan, 0.25f, kNan};
  route(routing_weights, {.n_chosen = 3});
  EXPECT_EQ(routing_weights[0], 0.5f);
  EXPECT_TRUE(std::isnan(routing_weights[1]));
  EXPECT_EQ(routing_weights[2], 0.0f);
  EXPECT_TRUE(std::isnan(routing_weights[3]));
  std::vector<float> all(5, kNan);
  route(all, {.n_chosen = 2});
  EXPECT_TRUE(std::isnan(all[0]) && std::isnan(all[1]));
  EXPECT_EQ(std::vector<float>(all.begin() + 2, all.end()), std::vector<float>(3, 0.0f));
}

TEST(Sigmoid, LiesBetweenZeroAndOneHoweverFarOut) {
  const std::vector<float> x = {0.0f, 2.0f, -2.0f, 1e30f, -1e30f};
  std::vector<float> y(x.size());
  sigmoid(x, y);
  const std::vector<float> expected = {0.5f, 0.880797078f, 0.119202922f, 1.0f, 0.0f};
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_FLOAT_EQ(y[i], expected[i]) << x[i];
}

TEST(RmsNorm, RowsDoNotDependOnSeqLen) {
  const Matrix<float> x = matrix(5, 130);
  const std::vector<float> weight = numbers(130, 5);
  Matrix<float> all(5, 130);
  Matrix<float> one(1, 130);
  rms_norm(x.view(), weight, 1e-5f, all.view());
  for (std::size_t r = 0; r < 5; ++r) {
    rms_norm(x.view().row_range(r, 1), weight, 1e-5f, one.view());
    EXPECT_TRUE(same_bits(one.view().row(0), all.view().row(r)));
  }
}

TEST(RmsNorm, DividesByTheMeanSquareNotTheSum) {
  const std::vector<float> weight(4, 1.0f);
  Matrix<float> x(1, 4);
  for (std::size_t i = 0; i < 4; ++i) x.data()[i] = 3.0f;
  rms_norm(x.view(), weight, 0.0f, x.view());
  EXPECT_FLOAT_EQ(x.data()[0], 1.0f);
}

TEST(MatmulTransB, NeverReadsCWhereBetaIs0) {
  for (const std::size_t k : kLengths) {
    const Matrix<float> a = matrix(3, k);
    const Matrix<float> b = matrix(5, k, 2);
    Matrix<float> fresh(3, 5);
    Matrix<float> poisoned(3, 5);
    for (std::size_t i = 0; i < 15; ++i) poisoned.data()[i] = i % 2 == 0 ? kNan : kInfinity;
    matmul_transb(1.5f, a.view(), b.view(), 0.0f, fresh.view());
    matmul_transb(1.5f, a.view(), b.view(), 0.0f, poisoned.view());
    EXPECT_TRUE(same_bits({poisoned.data(), 15}, {fresh.data(), 15})) << k;
  }
}

TEST(MatmulTransB, OfNoColumnsIsBetaTimesC) {
  Matrix<float> c = matrix(2, 3);
  const Matrix<float> before = matrix(2, 3);
  matmul_transb(7.0f, MatrixView<const float>(nullptr, 2, 0),
                MatrixView<const float>(nullptr, 3, 0), 0.5f, c.view());
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(c.data()[i], 0.5f * before.data()[i]);
}

TEST(MatmulTransB, OneRowAloneGivesWhatItGivesAmongMany) {
  for (const std::size_t k : kLengths) {
    const Matrix<float> a = matrix(7, k);
    const Matrix<float> b = matrix(9, k, 2);
    Matrix<float> all(7, 9);
    matmul_transb(1.0f, a.view(), b.view(), 0.0f, all.view());
    for (std::size_t m = 0; m < 7; ++m) {
      Matrix<float> one(1, 4);
      matmul_transb(1.0f, a.view().row_range(m, 1), b.view().row_range(3, 4), 0.0f, one.view());
      EXPECT_TRUE(same_bits(one.view().row(0), all.view().row(m).subspan(3, 4))) << k;
    }
  }
}

TEST(MatmulTransB, WritesThroughAStrideAndNothingBeside) {
  const Matrix<float> a = matrix(3, 8);
  const Matrix<float> b = matrix(2, 8, 2);
  Matrix<float> wide(3, 5);
  for (std::size_t i = 0; i < 15; ++i) wide.data()[i] = 42.0f;
  matmul_transb(1.0f, a.view(), b.view(), 0.0f, wide.view().col_range(1, 2));
  Matrix<float> plain(3, 2);
  matmul_transb(1.0f, a.view(), b.view(), 0.0f, plain.view());
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_TRUE(same_bits(wide.view().row(r).subspan(1, 2), plain.view().row(r)));
    EXPECT_EQ(wide.view()(r, 0), 42.0f);
    EXPECT_EQ(wide.view()(r, 3), 42.0f);
    EXPECT_EQ(wide.view()(r, 4), 42.0f);
  }
}

TEST(Softmax, SumsToOneAndSurvivesLargeNumbers) {
  std::vector<float> x = {1000.0f, 1001.0f, -kInfinity};
  softmax(x, x);
  EXPECT_FLOAT_EQ(x[0] + x[1], 1.0f);
  EXPECT_FLOAT_EQ(x[1] / x[0], std::exp(1.0f));
  EXPECT_EQ(x[2], 0.0f);
}

TEST(Softmax, OfNothingButMinusInfinityIsNan) {
  std::vector<float> x = {-kInfinity, -kInfinity};
  softmax(x, x);
  EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[1]));
}

TEST(Silu, IsZeroFarBelowZeroAndNeverNan) {
  std::vector<float> x = {-200.0f, -std::numeric_limits<float>::max(), 0.0f};
  silu(x, x);
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_EQ(x[1], 0.0f);
  EXPECT_EQ(x[2], 0.0f);
}

TEST(LayerNorm, WithoutWeightAndBiasIsThatOfOnesAndZeros) {
  const Matrix<float> x = matrix(2, 5);
  Matrix<float> y(2, 5), expected(2, 5);
  const std::vector<float> ones(5, 1.0f), zeros(5);
  layer_norm(x.view(), ones, zeros, 0.5f, expected.view());
  layer_norm(x.view(), {}, {}, 0.5f, y.view());
  for (std::size_t r = 0; r < 2; ++r) {
    EXPECT_TRUE(same_bits(y.view().row(r), expected.view().row(r)));
  }
}

TEST(Rope, GoesOnFromThePositionsInTheCache) {
  const std::vector<float> inv_freq = {1.0f, 0.1f, 0.01f};
  Matrix<float> whole = matrix(5, 12);
  Matrix<float> last = matrix(5, 12);
  rope(whole.view(), inv_freq, 0);
  rope(last.view().row_range(3, 2), inv_freq, 3);
  EXPECT_TRUE(same_bits(last.view().row(3), whole.view().row(3)));
  EXPECT_TRUE(same_bits(last.view().row(4), whole.view().row(4)));
}

TEST(Rope, LeavesPosition0AsItIs) {
  const std::vector<float> inv_freq = {1.0f, 0.5f};
  Matrix<float> x = matrix(1, 4);
  rope(x.view(), inv_freq, 0);
  EXPECT_TRUE(same_bits(x.view().row(0), matrix(1, 4).view().row(0)));
}

struct AttentionCall {
  Matrix<float> probabilities;
  Matrix<float> out;
};

AttentionCall attend(MatrixView<const float> q, MatrixView<const float> k,
                     MatrixView<const float> v, const AttentionShape& shape) {
  AttentionCall call{Matrix<float>(shape.n_heads * q.rows(), k.rows()),
                     Matrix<float>(q.rows(), q.cols())};
  attention(q, k, v, shape, call.probabilities.view(), call.out.view());
  return call;
}

TEST(Attention, OfAQueryDoesNotDependOnTheOtherQueries) {
  for (const std::size_t window : {std::size_t{0}, std::size_t{3}}) {
    const AttentionShape shape{4, 2, 6, window};
    const Matrix<float> q = matrix(7, 24);
    const Matrix<float> k = matrix(9, 12, 2);
    const Matrix<float> v = matrix(9, 12, 3);
    const AttentionCall all = attend(q.view(), k.view(), v.view(), shape);
    for (std::size_t i = 0; i < 7; ++i) {
      const AttentionCall one = attend(q.view().row_range(i, 1), k.view().row_range(0, 3 + i),
                                       v.view().row_range(0, 3 + i), shape);
      EXPECT_TRUE(same_bits(one.out.view().row(0), all.out.view().row(i))) << i;
    }
  }
}

TEST(Attention, NeverReadsTheFuture) {
  const AttentionShape shape{2, 1, 4, 0};
  const Matrix<float> q = matrix(2, 8);
  Matrix<float> k = matrix(5, 4, 2);
  Matrix<float> v = matrix(5, 4, 3);
  const AttentionCall clean = attend(q.view(), k.view(), v.view(), shape);
  for (float& value : k.view().row(4)) value = kNan;
  for (float& value : v.view().row(4)) value = kInfinity;
  const AttentionCall broken = attend(q.view(), k.view(), v.view(), shape);
  EXPECT_TRUE(same_bits(broken.out.view().row(0), clean.out.view().row(0)));
  EXPECT_EQ(broken.probabilities.view()(0, 4), 0.0f);
  EXPECT_TRUE(std::isnan(broken.out.view()(1, 0)));
}

TEST(Attention, OfNoQueriesWritesNothing) {
  const AttentionShape shape{2, 1, 4, 0};
  std::vector<float> probabilities(2 * 3, 7.0f), out(8, 7.0f);
  attention(MatrixView<const float>(nullptr, 0, 8), matrix(3, 4).view(), matrix(3, 4).view(), shape,
            MatrixView<float>(probabilities.data(), 0, 3), MatrixView<float>(out.data(), 0, 8));
  EXPECT_EQ(probabilities, std::vector<float>(2 * 3, 7.0f));
  EXPECT_EQ(out, std::vector<float>(8, 7.0f));
}

TEST(HalfToFloat, KeepsEveryKindOfNumber) {
  const std::vector<std::uint16_t> f16 = {0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00,
                                          0x7bff, 0x7c00, 0xfc00, 0x7e01, 0xc000};
  std::vector<float> out(f16.size());
  f16_to_f32(f16, out);
  EXPECT_TRUE(out[0] == 0.0f && !std::signbit(out[0]));
  EXPECT_TRUE(out[1] == 0.0f && std::signbit(out[1]));
  EXPECT_EQ(out[2], 0x1p-24f);
  EXPECT_EQ(out[3], 0x3ffp-24f);
  EXPECT_EQ(out[4], 0x1p-14f);
  EXPECT_EQ(out[5], 1.0f);
  EXPECT_EQ(out[6], 65504.0f);
  EXPECT_EQ(out[7], kInfinity);
  EXPECT_EQ(out[8], -kInfinity);
  EXPECT_TRUE(std::isnan(out[9]));
  EXPECT_EQ(out[10], -2.0f);

  const std::vector<std::uint16_t> bf16 = {0x3f80, 0x8000, 0x0001, 0x7f80, 0x7fc0, 0xc040};
  out.resize(bf16.size());
  bf16_to_f32(bf16, out);
  EXPECT_EQ(out[0], 1.0f);
  EXPECT_TRUE(out[1] == 0.0f && std::signbit(out[1]));
  EXPECT_EQ(out[2], 0x1p-133f);
  EXPECT_EQ(out[3], kInfinity);
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[5], -3.0f);
}

TEST(Operators, RefuseShapesThatDisagree) {
  std::vector<float> three(3);
  std::vector<float> four(4);
  Matrix<float> m23(2, 3);
  Matrix<float> m24(2, 4);
  Matrix<float> m32(3, 2);
  const std::vector<std::uint16_t> words(3);
  const AttentionShape shape{2, 1, 2, 0};
  Matrix<float> q(2, 4);
  Matrix<float> kv(3, 2);
  Matrix<float> p(4, 3);
  const std::vector<std::function<void()>> calls = {
      [&] { silu(three, four); },
      [&] { softmax(three, four); },
      [&] { swiglu(three, four, three); },
      [&] { swiglu(three, three, four); },
      [&] { add(m23.view(), m32.view()); },
      [&] { rms_norm(m23.view(), four, 1.0f, m23.view()); },
      [&] { rms_norm(m23.view(), three, 1.0f, m32.view()); },
      [&] { exact_gelu(three, four); },
      [&] { gelu_tanh(three, four); },
      [&] { relu(three, four); },
      [&] { sigmoid(three, four); },
      [&] { route(three, {.n_chosen = 0}); },
      [&] { short_conv(m23.view(), m23.view(), {}, m23.view(), m23.view()); },
      [&] { short_conv(m23.view(), m32.view(), four, m23.view().row_range(0, 1), m23.view()); },
      [&] { short_conv(m23.view(), m32.view(), {}, m23.view(), m23.view()); },
      [&] { short_conv(m23.view(), m32.view(), {}, m23.view().row_range(0, 1), m24.view()); },
      [&] {  // 3 heads for 2 key heads; then all shapes are right except that of `out`
        gated_delta(m24.view(), m23.view(), m23.view(), three, three, {3, 2, 1, 1}, m32.view(),
                    m23.view());
      },
      [&] {
        gated_delta(Matrix<float>(2, 5).view(), m23.view(), m23.view(), three, three, {3, 1, 1, 1},
                    Matrix<float>(3, 1).view(), m24.view());
      },
      [&] { route(three, {.n_chosen = 4}); },
      [&] { route(three, {.n_chosen = 1, .bias = four}); },
      [&] { route(four, {.n_chosen = 1, .groups = {.n = 3}}); },
      [&] {  // three of a group of two
        route(four, {.n_chosen = 1, .groups = {.n = 2, .n_counted = 3}});
      },
      [&] {  // three experts of one chosen group of two
        route(four, {.n_chosen = 3, .groups = {.n = 2}});
      },
      [&] { clamped_swiglu(three, four, 1.0f, 1.0f, three); },
      [&] { clamped_swiglu(three, three, 1.0f, 1.0f, four); },
      [&] { layer_norm(m23.view(), four, three, 1.0f, m23.view()); },
      [&] { layer_norm(m23.view(), three, four, 1.0f, m23.view()); },
      [&] { layer_norm(m23.view(), three, three, 1.0f, m32.view()); },
      [&] { matmul_transb(1, m23.view(), m24.view(), 0, m23.view()); },
      [&] { matmul_transb(1, m23.view(), m23.view(), 0, m23.view()); },
      [&] { rope(m23.view(), four, 0); },
      [&] { rope(m23.view(), {}, 0); },
      [&] { neighbour_rope(m23.view(), four, 0); },
      [&] { neighbour_rope(m23.view(), {}, 0); },
      [&] { f16_to_f32(words, four); },
      [&] { bf16_to_f32(words, four); },
      [&] { attention(m23.view(), kv.view(), kv.view(), shape, p.view(), q.view()); },
      [&] { attention(q.view(), m23.view(), kv.view(), shape, p.view(), q.view()); },
      [&] { attention(q.view(), kv.view(), m23.view(), shape, p.view(), q.view()); },
      [&] { attention(q.view(), kv.view(), kv.view(), shape, q.view(), q.view()); },
      [&] { attention(q.view(), kv.view(), kv.view(), shape, p.view(), m23.view()); },
      [&] {
        attention(q.view(), kv.view(), kv.view(), {3, 2, 2, 0}, p.view(), q.view());
      },
      [&] {
        attention(q.view(), kv.view(), kv.view(), {2, 0, 2, 0}, p.view(), q.view());
      },
      [&] {  // more queries than positions
        attention(q.view(), kv.view().row_range(0, 1), kv.view().row_range(0, 1), shape,
                  MatrixView<float>(p.data(), 4, 1), q.view());
      },
      [&] {
        scaled_attention(q.view(), kv.view(), kv.view(), shape, {.prompt = kv.rows() + 1}, p.view(),
                         q.view());
      },
      [&] {
        scaled_attention(q.view(), kv.view(), kv.view(), shape, {.sinks = four}, p.view(),
                         q.view());
      },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) EXPECT_THROW(calls[i](), Error) << "call " << i;
}

}  // namespace
}  // namespace stagecraft
