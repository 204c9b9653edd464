#include "operators/read_row.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

// Two rows of 300 halves, one byte off: longer than one part of a conversion, and not aligned.
TEST(ReadRow, ConvertsHalvesOfAnyLengthThatAreNotAligned) {
  constexpr std::size_t kCols = 300;
  for (const DType dtype : {DType::F16, DType::BF16}) {
    std::vector<std::uint16_t> halves(2 * kCols);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      halves[i] = static_cast<std::uint16_t>(dtype == DType::F16 ? 0x3c00 : 0x3f80);  // 1.0
    }
    halves[kCols + 299] = static_cast<std::uint16_t>(0x4000);  // 2.0 in both
    std::vector<std::byte> bytes(1 + 2 * halves.size());
    std::memcpy(bytes.data() + 1, halves.data(), 2 * halves.size());
    const StoredTensor matrix{"m", dtype, {2, kCols}, std::span(bytes).subspan(1)};
    std::vector<float> row(kCols), expected(kCols, 1.0f);
    expected.back() = 2.0f;
    read_row(matrix, 1, row);
    EXPECT_EQ(row, expected) << dtype_name(dtype);
  }
}

TEST(ReadRow, RefusesOtherTypesAndSizes) {
  const std::vector<std::byte> bytes(16);
  std::vector<float> row(2), shorter(1);
  EXPECT_EQ(error_of([&] {
              read_row({"m", DType::I32, {2, 2}, bytes}, 0, row);
            }),
            "read_row: 'm': expected F32, F16, BF16 or a quantised type, found I32");
  EXPECT_EQ(error_of([&] {
              read_row({"m", DType::F64, {1, 2}, bytes}, 0, row);
            }),
            "read_row: 'm': expected F32, F16, BF16 or a quantised type, found F64");
  EXPECT_EQ(error_of([&] {
              read_row({"m", DType::F32, {2, 2}, bytes}, 0, shorter);
            }),
            "read_row: out: expected 2 elements, found 1");
}

}  // namespace
}  // namespace stagecraft
