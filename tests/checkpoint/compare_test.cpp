#include "checkpoint/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"

namespace stagecraft {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class T>
StoredTensor tensor(DType dtype, const std::vector<T>& values) {
  return {"t", dtype, {values.size()}, std::as_bytes(std::span(values))};
}

Comparison compare(const std::vector<float>& a, const std::vector<float>& b,
                   Tolerance tolerance = {}) {
  return compare_tensors(tensor(DType::F32, a), tensor(DType::F32, b), tolerance);
}

TEST(CompareTensors, FindsTheFirstAndTheWorstPlace) {
  const Comparison found = compare({1, 2, 3, 4}, {1, 2.5, 3, 14});
  EXPECT_EQ(found.count, 4u);
  EXPECT_EQ(found.differing, 2u);
  EXPECT_EQ(found.first.index, 1u);
  EXPECT_EQ(found.first.size(), 0.5);
  EXPECT_EQ(found.worst.index, 3u);
  EXPECT_EQ(found.worst.size(), 10.0);
}

TEST(CompareTensors, TakesTheWorstAmongThoseThatDiffer) {
  // Each number is a row of its own: 1e6 may differ by 100, but 1 may not differ by 0.5.
  const std::vector<float> values = {1e6f, 1.0f};
  const std::vector<float> changed = {1e6f + 50.0f, 1.5f};
  StoredTensor a = tensor(DType::F32, values);
  StoredTensor b = tensor(DType::F32, changed);
  a.shape = b.shape = {2, 1};
  const Comparison found = compare_tensors(a, b, {});
  EXPECT_EQ(found.differing, 1u);
  EXPECT_EQ(found.worst.index, 1u);
}

TEST(CompareTensors, ReportsTheLargestGapWhereNothingDiffers) {
  const Comparison found = compare({1, 2, 3}, {1, 2.0001f, 3.00001f});
  EXPECT_EQ(found.differing, 0u);
  EXPECT_EQ(found.worst.index, 1u);
}

TEST(CompareTensors, AddsTheAbsoluteAndTheRelativePartOfTheTolerance) {
  EXPECT_EQ(compare({100}, {101}, {.relative = 0.0, .absolute = 1.0}).differing, 0u);
  EXPECT_EQ(compare({100}, {101.5}, {.relative = 0.0, .absolute = 1.0}).differing, 1u);
  EXPECT_EQ(compare({100}, {102}, {.relative = 0.01, .absolute = 1.0}).differing, 0u);
  EXPECT_EQ(compare({0}, {1e-6f}, {.relative = 1.0, .absolute = 0.0}).differing, 0u);
  EXPECT_EQ(compare({1}, {1 + 1e-6f}, {.relative = 0.0, .absolute = 0.0}).differing, 1u);
}

TEST(CompareTensors, IsTheSameBothWaysRound) {
  const Tolerance tolerance{.relative = 0.1, .absolute = 0.0};
  EXPECT_EQ(compare({100}, {110.5}, tolerance).differing, 0u);
  EXPECT_EQ(compare({110.5}, {100}, tolerance).differing, 0u);
}

TEST(CompareTensors, HoldsASmallNumberToTheSizeOfItsRow) {
  const Tolerance tolerance{.relative = 0.01, .absolute = 0.0};
  // The root mean square of {100, 0} is 71, so 0.7 is allowed.
  EXPECT_EQ(compare({100, 0}, {100, 0.5}, tolerance).differing, 0u);
  EXPECT_EQ(compare({100, 0}, {100, 0.8f}, tolerance).differing, 1u);
  // Large numbers in another row do not raise the tolerance.
  const std::vector<float> values = {100, 100, 0, 0};
  const std::vector<float> changed = {100, 100, 0.5, 0};
  StoredTensor a = tensor(DType::F32, values);
  StoredTensor b = tensor(DType::F32, changed);
  a.shape = b.shape = {2, 2};
  EXPECT_EQ(compare_tensors(a, b, tolerance).differing, 1u);
}

TEST(CompareTensors, DoesNotLetABrokenNumberExcuseItsNeighbours) {
  const Comparison found = compare({1, 2, 3}, {1, 1e30f, 3.5});
  EXPECT_EQ(found.differing, 2u);
  EXPECT_EQ(compare({1, kInfinity, 3}, {1, kInfinity, 3.5}).differing, 1u);
  EXPECT_EQ(compare({1, kNan, 3}, {1, kNan, 3.5}).differing, 1u);
}

TEST(CompareTensors, NanDiffersFromEveryNumberAndOnlyFromNumbers) {
  const Comparison found =
      compare({kNan, 1, kNan, 2}, {1, kNan, kNan, 2}, {.relative = 1e30, .absolute = 1e30});
  EXPECT_EQ(found.differing, 2u);
  EXPECT_EQ(found.nan_a, 2u);
  EXPECT_EQ(found.nan_b, 2u);
  EXPECT_EQ(found.first.index, 0u);
  EXPECT_EQ(found.worst.size(), std::numeric_limits<double>::infinity());
  // A NaN differs even if the tolerance itself overflows.
  const std::vector<double> huge = {1e300, std::nan("")};
  const std::vector<double> number = {1e300, 1.0};
  EXPECT_EQ(compare_tensors(tensor(DType::F64, huge), tensor(DType::F64, number),
                            {.relative = 1e30, .absolute = 1e30})
                .differing,
            1u);
}

TEST(CompareTensors, InfinityEqualsOnlyItself) {
  const Tolerance generous{.relative = 1e30, .absolute = 1e30};
  EXPECT_EQ(compare({kInfinity, -kInfinity}, {kInfinity, -kInfinity}, generous).differing, 0u);
  EXPECT_EQ(compare({kInfinity, kInfinity}, {-kInfinity, 1}, generous).differing, 2u);
}

TEST(CompareTensors, ReadsEveryFloatingType) {
  const std::vector<double> f64 = {1.5, -2.0};
  const std::vector<float> f32 = {1.5f, -2.0f};
  const std::vector<std::uint16_t> f16 = {0x3e00, 0xc000};
  const std::vector<std::uint16_t> bf16 = {0x3fc0, 0xc000};
  const StoredTensor exact = tensor(DType::F64, f64);
  for (const StoredTensor& other :
       {tensor(DType::F32, f32), tensor(DType::F16, f16), tensor(DType::BF16, bf16)}) {
    const Comparison found = compare_tensors(exact, other, {0.0, 0.0});
    EXPECT_EQ(found.count, 2u);
    EXPECT_EQ(found.differing, 0u) << dtype_name(other.dtype);
  }
}

TEST(CompareTensors, RefusesWhatIsNotFloatingPoint) {
  const std::vector<std::int64_t> ids = {1, 2};
  const std::vector<double> numbers = {1, 2};
  EXPECT_THROW(compare_tensors(tensor(DType::F64, numbers), tensor(DType::I64, ids), {}), Error);
}

TEST(CompareTensors, RefusesOtherShapesOfTheSameSize) {
  const std::vector<float> values(6);
  StoredTensor a = tensor(DType::F32, values);
  StoredTensor b = a;
  a.shape = {2, 3};
  b.shape = {3, 2};
  EXPECT_THROW(compare_tensors(a, b, {}), Error);
}

TEST(CompareTensors, AgreesOnNothing) {
  const Comparison found = compare({}, {});
  EXPECT_EQ(found.count, 0u);
  EXPECT_EQ(found.differing, 0u);
}

TEST(CompareTensors, AllocatesNothingForTheOtherSizesOfAnEmptyShape) {
  const std::vector<float> nothing;
  StoredTensor empty = tensor(DType::F32, nothing);
  empty.shape = {0, std::size_t{1} << 60};
  EXPECT_EQ(compare_tensors(empty, empty, {}).count, 0u);
}

}  // namespace
}  // namespace stagecraft
