// Compared with the Python package gguf, and for half precision with PyTorch
// (reference/make_formats.py): the bits must be the same.
#include "operators/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "operators/dequantize.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

constexpr DType kTypes[] = {DType::Q4_0, DType::Q4_1, DType::Q8_0};

std::string refusal(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> blocks(values.size() / 32 * dtype_block(dtype).bytes);
  try {
    quantize(dtype, values, blocks);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

class Quantize : public testing::TestWithParam<DType> {};

TEST_P(Quantize, GivesTheBitsOfTheReference) {
  const SafetensorsFile file(TEST_DATA "/formats/quantize.safetensors");
  const StoredTensor* expected = file.find(fmt::format("{}.blocks", dtype_name(GetParam())));
  ASSERT_NE(expected, nullptr);
  std::vector<float> copy;
  const auto values = elements(*file.find("values"), copy);
  std::vector<std::byte> found(expected->bytes.size());
  quantize(GetParam(), values, found);
  const std::size_t size = dtype_block(GetParam()).bytes;
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i], expected->bytes[i]) << "block " << i / size << ", byte " << i % size;
  }
}

TEST_P(Quantize, ChangesNothingThatWasQuantisedBefore) {
  const SafetensorsFile file(TEST_DATA "/formats/quantize.safetensors");
  const auto blocks = file.find(fmt::format("{}.blocks", dtype_name(GetParam())))->bytes;
  std::vector<float> values(blocks.size() / dtype_block(GetParam()).bytes * 32);
  dequantize(GetParam(), blocks, values);
  std::vector<std::byte> again(blocks.size());
  quantize(GetParam(), values, again);
  std::vector<float> same(values.size());
  dequantize(GetParam(), again, same);
  // The d of the values q * d is rounded to f16 once more: a relative error of at most 2^-10.
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(same[i], values[i], std::abs(values[i]) * 0x1p-9f + 2e-6f) << i;
  }
}

TEST_P(Quantize, RefusesWhatItCannotHold) {
  std::vector<float> values(64, 1.0f);
  const std::string name(dtype_name(GetParam()));
  const std::string expected = "expected a number that " + name + " can hold, found ";
  values[40] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(GetParam(), values), "quantize: element 40: " + expected + "nan");
  values[40] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(refusal(GetParam(), values), "quantize: element 40: " + expected + "-inf");
  values[40] = 1e9f;
  EXPECT_EQ(refusal(GetParam(), values), "quantize: element 40: " + expected + "1000000000");
}

INSTANTIATE_TEST_SUITE_P(EveryType, Quantize, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(dtype_name(type.param)); });

TEST(QuantizeContract, RefusesOtherTypesAndSizes) {
  std::vector<std::byte> blocks(68);
  const std::vector<float> values(64);
  EXPECT_NO_THROW(quantize(DType::Q8_0, values, blocks));
  EXPECT_THROW(quantize(DType::Q5_0, values, blocks), Error);
  EXPECT_THROW(quantize(DType::Q8_0, std::span(values).first(63), blocks), Error);
  EXPECT_THROW(quantize(DType::Q8_0, values, std::span(blocks).first(67)), Error);
}

TEST(FloatToHalf, RoundsAsPyTorchDoes) {
  const SafetensorsFile file(TEST_DATA "/formats/float_to_half.safetensors");
  std::vector<float> copy;
  const auto values = elements(*file.find("values"), copy);
  for (const char* name : {"F16", "BF16"}) {
    std::vector<std::uint16_t> bits(values.size()), words;
    (name[0] == 'F' ? f32_to_f16 : f32_to_bf16)(values, bits);
    const auto expected = elements(*file.find(name), words);
    for (std::size_t i = 0; i < bits.size(); ++i) {
      ASSERT_EQ(bits[i], expected[i]) << name << " of " << values[i];
    }
  }
}

TEST(FloatToHalf, GivesBackEveryHalf) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    for (const bool f16 : {true, false}) {
      const auto half = static_cast<std::uint16_t>(bits);
      std::uint16_t back = 0;
      float value = 0.0f;
      (f16 ? f16_to_f32 : bf16_to_f32)({&half, 1}, {&value, 1});
      (f16 ? f32_to_f16 : f32_to_bf16)({&value, 1}, {&back, 1});
      if (std::isnan(value)) {
        (f16 ? f16_to_f32 : bf16_to_f32)({&back, 1}, {&value, 1});
        ASSERT_TRUE(std::isnan(value)) << bits;
      } else {
        ASSERT_EQ(back, half) << (f16 ? "F16" : "BF16");
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft
