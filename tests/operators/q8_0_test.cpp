// The blocks of stage 10, compared with quantize.h and dequantize.h, which are separate code.
#include "operators/q8_0.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/error.h"
#include "operators/dequantize.h"
#include "operators/quantize.h"

namespace stagecraft {
namespace {

std::vector<float> some_numbers(std::size_t n) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = i / 32 % 5 == 4 ? 0.0f : std::ldexp(normal(engine), static_cast<int>(i / 32 % 9) - 4);
  }
  return x;
}

TEST(Q8_0, IsTheFormatOfGgufFilesByteForByte) {
  const std::vector<float> x = some_numbers(640);
  std::vector<BlockQ8_0> blocks(20);
  quantize_q8_0(x, blocks);
  std::vector<std::byte> bytes(20 * sizeof(BlockQ8_0));
  quantize(DType::Q8_0, x, bytes);
  EXPECT_EQ(std::memcmp(bytes.data(), blocks.data(), bytes.size()), 0);

  std::vector<float> ours(x.size());
  std::vector<float> read(x.size());
  dequantize_q8_0(blocks, ours);
  dequantize(DType::Q8_0, bytes, read);
  EXPECT_EQ(ours, read);
}

TEST(Q8_0, MultipliesWhatTheBlocksStandFor) {
  const std::vector<float> x = some_numbers(96);
  std::vector<BlockQ8_0> blocks(3);
  quantize_q8_0(x, blocks);
  std::vector<float> read(x.size());
  dequantize_q8_0(blocks, read);
  double expected = 0.0;
  for (const float value : read) expected += static_cast<double>(value) * value;
  EXPECT_NEAR(dot_q8_0(blocks, blocks), expected, 1e-6 * expected);
}

TEST(Q8_0, RefusesSizesThatDisagree) {
  std::vector<BlockQ8_0> blocks(2);
  std::vector<float> x(63);
  EXPECT_THROW(quantize_q8_0(x, blocks), Error);
  EXPECT_THROW(dequantize_q8_0(blocks, x), Error);
  EXPECT_THROW(dot_q8_0(blocks, std::span(blocks).first(1)), Error);
}

}  // namespace
}  // namespace stagecraft
