// Compares matrices that are stored in parts with the numbers that reference/quantized_folders.py
// computed, bit for bit, and checks the type that each is read into.
#include "checkpoint/composed_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <list>

#include "checkpoint/checkpoint.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/model_source.h"
#include "checkpoint/safetensors.h"
#include "tests/support/error_of.h"
#include "tests/support/same_bits.h"

namespace stagecraft {
namespace {

std::vector<float> floats(const StoredTensor& tensor) {
  std::vector<float> values;
  convert_tensor(tensor, DType::F32, "test", [&](std::span<const std::byte> piece) {
    const std::size_t at = values.size();
    values.resize(at + piece.size() / sizeof(float));
    std::memcpy(&values[at], piece.data(), piece.size());
  });
  return values;
}

struct Folder {
  const char* name;
  DType dtype;
  const char* text;
  std::size_t in_parts = 3, n_tensors = 12;
};
void PrintTo(const Folder& folder, std::ostream* out) { *out << folder.name; }

class QuantizedFolder : public testing::TestWithParam<Folder> {};

TEST_P(QuantizedFolder, HoldsTheNumbersOfTheReferenceBitForBit) {
  const std::string path = std::string(TEST_DATA "/formats/quantized/") + GetParam().name;
  const Checkpoint checkpoint = Checkpoint::open(path);
  const SafetensorsFile expected(path + "/expected.safetensors");
  EXPECT_EQ(expected.tensors().size(), GetParam().in_parts);
  for (const StoredTensor& wanted : expected.tensors()) {
    const StoredTensor* found = checkpoint.find(wanted.name);
    ASSERT_NE(found, nullptr) << wanted.name;
    EXPECT_EQ(found->shape, wanted.shape) << wanted.name;
    EXPECT_EQ(dtype_name(found->dtype), dtype_name(GetParam().dtype)) << wanted.name;
    EXPECT_TRUE(same_bits(floats(*found), floats(wanted))) << wanted.name;
  }
  EXPECT_EQ(checkpoint.tensors().size(), GetParam().n_tensors) << "a part is still there";
  EXPECT_EQ(checkpoint.composed_text(), GetParam().text);
  EXPECT_GT(checkpoint.copied_bytes(), 0u);
}

constexpr Folder kFolders[] = {
    {"gptq", DType::Q4_0, "GPTQ int4, one scale per 32 inputs; read as Q4_0"},
    {"gptq-act-order", DType::F32, "GPTQ int4, one scale per 16 inputs; read as F32"},
    {"gptq-v2", DType::Q8_0, "GPTQ int4, one scale per output; read as Q8_0"},
    {"awq", DType::Q8_0, "AWQ int4, one scale per 32 inputs; read as Q8_0"},
    {"packed", DType::Q4_0, "compressed-tensors int4, one scale per 32 inputs; read as Q4_0"},
    {"packed-zeros", DType::Q8_0, "compressed-tensors int4, one scale per output; read as Q8_0"},
    {"packed-act-order", DType::F32,
     "compressed-tensors int4, one scale per 8 inputs; read as F32"},
    {"fp8-blocks", DType::F32, "fp8, one scale per block of 16 x 32; read as F32"},
    {"fp8-one-scale", DType::F32, "fp8, one scale per matrix; read as F32"},
    {"mxfp4", DType::BF16, "MXFP4, one scale per 32 inputs; read as BF16", 2, 20},
};

INSTANTIATE_TEST_SUITE_P(EveryFormat, QuantizedFolder, testing::ValuesIn(kFolders),
                         [](const auto& folder) {
                           std::string name = folder.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// ---- sizes that the folders do not have ---------------------------------------------------------

// Tensors that a test makes, by name.
class Parts {
 public:
  template <class T>
  void add(const std::string& name, DType dtype, std::vector<std::size_t> shape,
           std::vector<T> values) {
    const auto bytes = std::as_bytes(std::span(values));
    bytes_.push_back({bytes.begin(), bytes.end()});
    stored_.push_back({name, dtype, std::move(shape), bytes_.back()});
    map_[name] = &stored_.back();
  }
  TensorMap& map() { return map_; }

 private:
  std::list<std::vector<std::byte>> bytes_;
  std::list<StoredTensor> stored_;
  TensorMap map_;
};

std::string refusal(const Quantization& how, Parts& parts) {
  return error_of([&] { ComposedWeights(how, parts.map(), "file"); });
}

TEST(ComposedWeights, TakeWordsThatAreNotFull) {
  const Quantization how{.method = Quantization::Method::CompressedTensors};
  Parts parts;  // 3 outputs of 9 inputs
  parts.add<std::uint32_t>("a.weight_packed", DType::I32, {3, 2},
                           {0x76543210, 0xf, 0xfedcba98, 0x8, 0x00000000, 0x1});
  parts.add<std::int64_t>("a.weight_shape", DType::I64, {2}, {3, 9});
  parts.add<float>("a.weight_scale", DType::F32, {3, 1}, {1.0f, 0.5f, 2.0f});
  parts.add<std::uint32_t>("a.weight_zero_point", DType::I32, {1, 1}, {0x048});
  const ComposedWeights weights(how, parts.map(), "file");
  ASSERT_EQ(weights.tensors().size(), 1u);
  EXPECT_TRUE(parts.map().empty());
  EXPECT_EQ(weights.tensors()[0].name, "a.weight");
  EXPECT_EQ(weights.tensors()[0].shape, (std::vector<std::size_t>{3, 9}));
  EXPECT_EQ(floats(weights.tensors()[0]),
            (std::vector<float>{-8, -7,  -6, -5,  -4, -3,  -2, -1,  7,     // minus 8
                                2,  2.5, 3,  3.5, 4,  4.5, 5,  5.5, 2,     // minus 4, halved
                                0,  0,   0,  0,   0,  0,   0,  0,   2}));  // minus 0, doubled
}

// 17 outputs, because the reader takes 16 at a time.
TEST(ComposedWeights, OfMxfp4HaveTheLargestAndTheSmallestScales) {
  constexpr std::size_t kOutputs = 17;
  const Quantization how{.method = Quantization::Method::Mxfp4};
  Parts parts;  // each byte of output o holds code 4 (the number 2) and code o % 16
  std::vector<std::uint8_t> blocks, scales;
  for (std::size_t o = 0; o < kOutputs; ++o) {
    blocks.insert(blocks.end(), 16, static_cast<std::uint8_t>(4 + 16 * (o % 16)));
    scales.push_back(o == 0 ? 0 : o == 16 ? 254 : 127);
  }
  parts.add("a_blocks", DType::U8, {1, kOutputs, 1, 16}, blocks);
  parts.add("a_scales", DType::U8, {1, kOutputs, 1}, scales);
  const ComposedWeights weights(how, parts.map(), "file");
  ASSERT_EQ(weights.tensors().size(), 1u);
  EXPECT_EQ(weights.tensors()[0].name, "a");
  EXPECT_EQ(weights.tensors()[0].shape, (std::vector<std::size_t>{1, 32, kOutputs}));
  const std::vector<float> found = floats(weights.tensors()[0]);
  ASSERT_EQ(found.size(), 32 * kOutputs);
  const float table[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
  for (std::size_t k = 0; k < 32; ++k) {
    for (std::size_t o = 0; o < kOutputs; ++o) {
      const float number = table[k % 2 == 0 ? 4 : o % 16];
      EXPECT_EQ(found[k * kOutputs + o], std::ldexp(number, scales[o] - 127)) << k << ", " << o;
    }
  }
}

TEST(ComposedWeights, OfFp8HaveSmallerBlocksAtTheEdges) {
  const Quantization how{.method = Quantization::Method::Fp8, .block_rows = 2, .block_columns = 2};
  Parts parts;
  constexpr std::uint8_t kOne = 0x38;
  parts.add<std::uint8_t>("a.weight", DType::F8_E4M3, {3, 5}, std::vector<std::uint8_t>(15, kOne));
  parts.add<float>("a.weight_scale", DType::F32, {2, 3}, {1, 2, 3, 4, 5, 6});
  parts.add<float>("a.input_scale", DType::F32, {}, {5});
  const ComposedWeights weights(how, parts.map(), "file");
  EXPECT_TRUE(parts.map().empty());
  EXPECT_EQ(floats(weights.tensors().at(0)),
            (std::vector<float>{1, 1, 2, 2, 3, 1, 1, 2, 2, 3, 4, 4, 5, 5, 6}));
}

// A matrix of 8 outputs and 32 inputs, in which each q - zero is 1, but for the zeros of the first
// `zeros`.
Parts gptq_parts(std::vector<std::uint16_t> scales, DType dtype, std::uint32_t zeros = 0x77777777) {
  Parts parts;
  parts.add<std::uint32_t>("a.qweight", DType::I32, {4, 8},
                           std::vector<std::uint32_t>(32, 0x99999999));
  parts.add<std::uint32_t>("a.qzeros", DType::I32, {1, 1}, {zeros});
  parts.add<std::uint16_t>("a.scales", dtype, {1, 8}, std::move(scales));
  return parts;
}
constexpr Quantization kGptq{.method = Quantization::Method::Gptq, .zeros_less_one = true};

TEST(ComposedWeights, AreF32WhereAScaleIsNoF16) {
  const auto read = [](std::uint16_t bf16) {
    Parts parts = gptq_parts(std::vector<std::uint16_t>(8, bf16), DType::BF16);
    const ComposedWeights weights(kGptq, parts.map(), "file");
    const StoredTensor& tensor = weights.tensors().at(0);
    for (const float value : floats(tensor)) {
      EXPECT_EQ(value, std::bit_cast<float>(std::uint32_t{bf16} << 16));
    }
    return tensor.dtype;
  };
  EXPECT_EQ(read(0x3c81), DType::Q4_0);  // 0.0157
  EXPECT_EQ(read(0x3380), DType::Q4_0);  // 2^-24: the smallest f16
  EXPECT_EQ(read(0x3300), DType::F32);   // 2^-25
  EXPECT_EQ(read(0x4780), DType::F32);   // 65536
}

// Q4_0 holds -8 to 7.
TEST(ComposedWeights, AreQ8WhereAnIntegerMinusItsZeroHasMoreThanFourBits) {
  const auto read = [](std::uint32_t zeros) {
    Parts parts = gptq_parts(std::vector<std::uint16_t>(8, 0x3c00), DType::F16, zeros);
    const ComposedWeights weights(kGptq, parts.map(), "file");
    return std::pair(weights.tensors().at(0).dtype, floats(weights.tensors().at(0)).front());
  };
  EXPECT_EQ(read(0x77777771), std::pair(DType::Q4_0, 7.0f));  // 9 - (1 + 1)
  EXPECT_EQ(read(0x77777770), std::pair(DType::Q8_0, 8.0f));
}

TEST(ComposedWeights, RefuseAMatrixThatIsAlsoThereWhole) {
  Parts parts = gptq_parts(std::vector<std::uint16_t>(8, 0x3c00), DType::F16);
  parts.add<float>("a.weight", DType::F32, {1}, {1.0f});
  EXPECT_EQ(
      refusal(kGptq, parts),
      "file: tensor 'a.weight': expected it once, found it both whole and in quantised parts");
}

TEST(ComposedWeights, RefuseToBeNone) {
  Parts parts;
  parts.add<float>("a.weight", DType::F32, {1}, {1.0f});
  EXPECT_EQ(refusal(kGptq, parts),
            "file: expected matrices as 'quantization_config' says (GPTQ int4, one scale per "
            "output), found no tensor '*.qweight'");
}

}  // namespace
}  // namespace stagecraft
