// Against what the gguf package makes of random blocks (reference/make_gguf.py): bit for bit.
#include "operators/dequantize.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {
namespace {

constexpr DType kQuantized[] = {DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1,
                                DType::Q8_0, DType::Q2_K, DType::Q3_K, DType::Q4_K,
                                DType::Q5_K, DType::Q6_K, DType::Q8_K};

class Dequantize : public testing::TestWithParam<DType> {};

TEST_P(Dequantize, GivesTheBitsOfTheReference) {
  const SafetensorsFile file(TEST_DATA "/gguf/blocks.safetensors");
  const std::string name(dtype_name(GetParam()));
  const StoredTensor* blocks = file.find(name + ".blocks");
  const StoredTensor* expected = file.find(name + ".expected");
  ASSERT_TRUE(blocks != nullptr && expected != nullptr);
  std::vector<float> found(expected->bytes.size() / sizeof(float));
  dequantize(GetParam(), blocks->bytes, found);
  std::vector<float> copy;
  const auto wanted = elements(*expected, copy);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(std::memcmp(&found[i], &wanted[i], sizeof(float)), 0)
        << "element " << i << ": expected " << wanted[i] << ", found " << found[i];
  }
}

INSTANTIATE_TEST_SUITE_P(EveryType, Dequantize, testing::ValuesIn(kQuantized),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(DequantizeContract, RefusesOtherTypesAndSizes) {
  std::vector<std::byte> blocks(36);
  std::vector<float> out(64);
  EXPECT_THROW(dequantize(DType::F32, blocks, out), Error);
  EXPECT_THROW(dequantize(DType::Q4_0, std::span(blocks).first(35), out), Error);
  EXPECT_THROW(dequantize(DType::Q4_0, std::span(blocks).first(18), out), Error);
  EXPECT_NO_THROW(dequantize(DType::Q4_0, blocks, out));
}

}  // namespace
}  // namespace stagecraft
