// Random blocks must give the same bits as with the Python package gguf (reference/make_gguf.py).
#include "operators/dequantize.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {
namespace {

constexpr DType kQuantized[] = {DType::Q4_0, DType::Q4_1,   DType::Q5_0,   DType::Q5_1, DType::Q8_0,
                                DType::Q2_K, DType::Q3_K,   DType::Q4_K,   DType::Q5_K, DType::Q6_K,
                                DType::Q8_K, DType::IQ4_NL, DType::IQ4_XS, DType::MXFP4};

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

TEST(BlocksAsQ8_0, LoseNothing) {
  const SafetensorsFile file(TEST_DATA "/gguf/blocks.safetensors");
  for (const DType dtype : {DType::Q5_0, DType::IQ4_NL}) {
    EXPECT_TRUE(fits_q8_0(dtype));
    const StoredTensor* blocks = file.find(std::string(dtype_name(dtype)) + ".blocks");
    ASSERT_NE(blocks, nullptr);
    std::vector<float> expected(element_count({"", dtype, {}, blocks->bytes}));
    std::vector<float> found(expected.size());
    std::vector<std::byte> as_q8_0(found.size() / 32 * 34);
    dequantize(dtype, blocks->bytes, expected);
    blocks_as_q8_0(dtype, blocks->bytes, as_q8_0);
    dequantize(DType::Q8_0, as_q8_0, found);
    EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
        << dtype_name(dtype);
  }
}

TEST(BlocksAsQ8_0, RefusesOtherTypesAndSizes) {
  std::vector<std::byte> blocks(2 * 18), out(2 * 34);
  EXPECT_NO_THROW(blocks_as_q8_0(DType::IQ4_NL, blocks, out));
  EXPECT_THROW(blocks_as_q8_0(DType::IQ4_NL, blocks, std::span(out).first(34)), Error);
  EXPECT_THROW(blocks_as_q8_0(DType::IQ4_NL, std::span(blocks).first(19), out), Error);
  EXPECT_THROW(blocks_as_q8_0(DType::Q4_0, blocks, out), Error);
}

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
