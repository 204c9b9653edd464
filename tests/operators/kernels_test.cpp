// Each kernel of each instruction set that this processor runs, compared with sums in double
// precision, also for sizes that are not a multiple of a vector.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <random>

#include "operators/dequantize.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"
#include "operators/kernels/panel_matrix.h"
#include "operators/quantize.h"
#include "operators/read_row.h"
#include "tensor/matrix.h"
#include "tests/support/random_blocks.h"

namespace stagecraft {
namespace {

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(engine);
  return values;
}

// A matrix as stored in a file of this dtype, and its values as floats.
struct Stored {
  std::vector<std::byte> bytes;
  std::vector<float> values;
  StoredTensor tensor;

  Stored(DType dtype, std::size_t outputs, std::size_t inputs)
      : values(random_floats(outputs * inputs, 3)) {
    const auto bytes_of = [&](auto& words) {
      const auto view = std::as_bytes(std::span(words));
      bytes.assign(view.begin(), view.end());
    };
    if (dtype == DType::F32) {
      bytes_of(values);
    } else if (dtype == DType::F16 || dtype == DType::BF16) {
      std::vector<std::uint16_t> halves(values.size());
      (dtype == DType::F16 ? f32_to_f16 : f32_to_bf16)(values, halves);
      bytes_of(halves);
    } else if (has_no_writer(dtype)) {
      std::mt19937 random(5);
      bytes.resize(values.size() / dtype_block(dtype).elements * dtype_block(dtype).bytes);
      fill_blocks(dtype, bytes, random);
    } else {
      bytes.resize(values.size() / dtype_block(dtype).elements * dtype_block(dtype).bytes);
      quantize(dtype, values, bytes);
    }
    tensor = {"matrix", dtype, {outputs, inputs}, bytes};
    for (std::size_t row = 0; row < outputs; ++row) {
      read_row(tensor, row, std::span(values).subspan(row * inputs, inputs));
    }
  }
};

float as_float(std::uint16_t bf16) { return std::bit_cast<float>(std::uint32_t{bf16} << 16); }

// Rows in the ActivationType of a kernel, and their values as floats.
struct Rows {
  std::vector<float> values;
  std::vector<std::uint16_t> bf16;
  std::vector<std::int8_t> bytes;
  std::vector<float> scales;
  std::vector<BlockSums> sums;
  std::vector<Q8KBlock> q8_k;

  Rows(const Kernels& k, ActivationType type, std::size_t n, std::size_t inputs)
      : values(random_floats(n * inputs, 4)),
        bf16(values.size()),
        bytes(values.size()),
        scales(values.size() / kQuantBlock),
        sums(scales.size()),
        q8_k(values.size() / Q8KBlock::kSize) {
    if (type == ActivationType::BF16) {
      k.to_bf16(values.data(), values.size(), bf16.data());
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = as_float(bf16[i]);
    } else if (type == ActivationType::Q8) {
      k.to_q8(values.data(), values.size(), bytes.data(), scales.data(), sums.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = scales[i / kQuantBlock] * static_cast<float>(bytes[i]);
      }
    } else if (type == ActivationType::Q8_K) {
      k.to_q8_k(values.data(), values.size(), q8_k.data());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Q8KBlock& block = q8_k[i / Q8KBlock::kSize];
        values[i] = block.scale * static_cast<float>(block.bytes[i % Q8KBlock::kSize]);
      }
    }
  }

  // For a tile of all rows.
  TileArgs args(ActivationType type, const std::byte* panel, std::size_t inputs, float* out,
                std::size_t out_stride, bool add) const {
    const bool is_k = type == ActivationType::Q8_K;
    const void* data = type == ActivationType::F32    ? static_cast<const void*>(values.data())
                       : type == ActivationType::BF16 ? static_cast<const void*>(bf16.data())
                       : is_k                         ? static_cast<const void*>(q8_k.data())
                                                      : bytes.data();
    return {panel,
            inputs,
            data,
            is_k ? inputs / Q8KBlock::kSize : inputs,
            scales.data(),
            sums.data(),
            inputs / kQuantBlock,
            out,
            out_stride,
            add};
  }
};

struct Product {
  DType dtype;
  WeightLayout layout;
  std::size_t inputs;
};

void PrintTo(const Product& p, std::ostream* out) { *out << dtype_name(p.dtype); }

class EveryKernel : public testing::TestWithParam<std::tuple<Product, const Kernels*>> {};

// A panel times as many rows as its kernel takes, and times fewer rows, compared with sums in
// double precision. weight(o, i): what the panel holds for output o and input i. add: the results
// are added to what is there.
template <class Weight>
void expect_product(const Kernels& k, WeightLayout layout, const std::byte* panel,
                    std::size_t inputs, bool add, Weight weight) {
  const auto [tile, most, type] = k.matmul(layout);
  const Rows rows(k, type, most, inputs);
  constexpr float kBefore = -7.0f;
  std::vector<float> whole;
  for (std::size_t n = most; n >= 1; --n) {
    if (n > 40 && n < most - 1 && n % 16 > 1) continue;  // much the same as others
    constexpr std::size_t kStride = kPanelOutputs + 3;
    std::vector<float> out(n * kStride, kBefore);
    tile(rows.args(type, panel, inputs, out.data(), kStride, add), n);
    const bool first = whole.empty();
    if (first) whole = out;
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t o = 0; o < kStride; ++o) {
        const float got = out[r * kStride + o];
        ASSERT_EQ(got, whole[r * kStride + o]) << "row " << r << " of " << n << ", output " << o;
        if (o >= kPanelOutputs) {
          ASSERT_EQ(got, kBefore) << "written beside the tile";
          continue;
        }
        if (!first) continue;
        double expected = add ? kBefore : 0.0, magnitude = std::abs(expected);
        for (std::size_t i = 0; i < inputs; ++i) {
          const double one = static_cast<double>(rows.values[r * inputs + i]) * weight(o, i);
          expected += one;
          magnitude += std::abs(one);
        }
        // The error of a sum of n products in f32 is at most n half units in the last place of the
        // sum of their magnitudes (Higham, Accuracy and Stability, 3.1). A product of scales may be
        // rounded, too.
        const double n_rounding = static_cast<double>(inputs + 8) * 0x1p-24;
        ASSERT_NEAR(got, expected, magnitude * n_rounding) << "row " << r << ", output " << o;
      }
    }
  }
}

// The bits of a row times two panels at a time are those of one panel after the other, whichever
// lies first in memory.
void expect_two_panels(const Kernels& k, WeightLayout layout,
                       const std::array<const std::byte*, 2>& panels, std::size_t inputs,
                       bool add) {
  const auto [tile, most, type] = k.matmul(layout);
  const Rows rows(k, type, 1, inputs);
  for (const std::size_t first : {0, 1}) {
    std::vector<float> one_by_one(3 * kPanelOutputs, -7.0f), together = one_by_one;
    constexpr std::size_t kSecondOut = 2 * kPanelOutputs;  // a gap between the two results
    const auto args = [&](std::size_t panel, std::vector<float>& to) {
      return rows.args(type, panels[panel], inputs, &to[panel == first ? 0 : kSecondOut],
                       kPanelOutputs, add);
    };
    for (const std::size_t panel : {0, 1}) tile(args(panel, one_by_one), 1);
    TileArgs both = args(first, together);
    both.second = panels[1 - first] - panels[first];
    both.second_out = kSecondOut;
    both.prefetch = Prefetch::FromMemory;
    tile(both, 1);
    ASSERT_EQ(together, one_by_one) << "first panel " << first;
  }
}

TEST_P(EveryKernel, GivesThePanelsProductWhateverTheNumberOfRows) {
  const auto& [product, k] = GetParam();
  constexpr std::size_t kOutputs = 45;  // a panel and a part of one
  const std::size_t inputs = product.inputs, bytes = panel_bytes(product.layout, inputs);
  const Stored stored(product.dtype, kOutputs, inputs);
  std::vector<std::byte> panels(2 * bytes);
  for (std::size_t first = 0; first < kOutputs; first += kPanelOutputs) {
    const auto panel = std::span(panels).subspan(first / kPanelOutputs * bytes, bytes);
    pack_panel(stored.tensor, product.layout, first, panel);
    for (const bool add : {false, true}) {
      expect_product(*k, product.layout, panel.data(), inputs, add,
                     [&](std::size_t o, std::size_t i) {
                       const std::size_t output = first + o;
                       return output < kOutputs ? double{stored.values[output * inputs + i]} : 0.0;
                     });
      if (HasFatalFailure()) FAIL() << "panel of output " << first << (add ? ", added" : "");
    }
  }
  for (const bool add : {false, true}) {
    if (k->two_panels) {
      expect_two_panels(*k, product.layout, {panels.data(), panels.data() + bytes}, inputs, add);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, EveryKernel,
    testing::Combine(testing::Values(Product{DType::F32, WeightLayout::F32, 1},
                                     Product{DType::F32, WeightLayout::F32, 77},
                                     Product{DType::F16, WeightLayout::F16, 77},
                                     Product{DType::BF16, WeightLayout::BF16, 78},
                                     Product{DType::BF16, WeightLayout::F32, 77},
                                     Product{DType::BF16, WeightLayout::RoundedBF16, 78},
                                     Product{DType::BF16, WeightLayout::RoundedBF16, 2},
                                     Product{DType::BF16, WeightLayout::RoundedBF16, 640},
                                     Product{DType::BF16, WeightLayout::RoundedBF16, 1026},
                                     Product{DType::Q8_0, WeightLayout::Q8_0, 96},
                                     Product{DType::Q4_0, WeightLayout::Q4_0, 96},
                                     Product{DType::Q4_1, WeightLayout::Q4_1, 96},
                                     Product{DType::Q5_0, WeightLayout::Q5_0, 96},
                                     Product{DType::Q5_1, WeightLayout::Q5_1, 96},
                                     Product{DType::IQ4_NL, WeightLayout::IQ4_NL, 96},
                                     Product{DType::MXFP4, WeightLayout::MXFP4, 96},
                                     Product{DType::Q2_K, WeightLayout::Q2_K, 512},
                                     Product{DType::Q3_K, WeightLayout::Q3_K, 512},
                                     Product{DType::Q4_K, WeightLayout::Q4_K, 512},
                                     Product{DType::Q5_K, WeightLayout::Q5_K, 512},
                                     Product{DType::Q6_K, WeightLayout::Q6_K, 512},
                                     Product{DType::Q6_K, WeightLayout::F32, 512},
                                     Product{DType::Q8_K, WeightLayout::F32, 512},
                                     Product{DType::IQ4_XS, WeightLayout::IQ4_XS, 512}),
                     testing::ValuesIn(runnable_kernels())),
    [](const auto& parameter) {
      const Product& p = std::get<0>(parameter.param);
      return fmt::format("{}_{}_{}_{}", dtype_name(p.dtype), static_cast<int>(p.layout), p.inputs,
                         std::get<1>(parameter.param)->name);
    });

// The rows' products with a panel, in as few tiles as there can be: [rows][32].
std::vector<float> products(const Kernels& k, WeightLayout layout,
                            const std::vector<std::byte>& panel, const Rows& rows, std::size_t n,
                            std::size_t inputs) {
  const auto [tile, most, type] = k.matmul(layout);
  const std::size_t blocks = inputs / kQuantBlock;
  std::vector<float> out(n * kPanelOutputs);
  for (std::size_t r = 0; r < n; r += most) {
    const std::size_t some = std::min(most, n - r);
    tile({panel.data(), inputs, &rows.bytes[r * inputs], inputs, &rows.scales[r * blocks],
          &rows.sums[r * blocks], blocks, &out[r * kPanelOutputs], kPanelOutputs},
         some);
  }
  return out;
}

// Sums of integers are exact in any order, and the float operations after them are the same
// everywhere. Only `portable` rounds a multiply-add twice.
TEST(Kernels, OfBytesGiveTheSameBitsWhateverInstructionsSumThem) {
  constexpr std::size_t kInputs = 512, kRows = kMostTileRows + 1;
  auto tables = runnable_kernels();
  std::erase_if(tables, [](const Kernels* k) { return std::string_view(k->name) == "portable"; });
  if (tables.size() < 2) GTEST_SKIP() << "one instruction set to compare";
  const Rows rows(*tables.front(), ActivationType::Q8, kRows, kInputs);
  for (const DType dtype : {DType::Q8_0, DType::Q4_0, DType::Q4_1, DType::Q5_0, DType::Q5_1,
                            DType::IQ4_NL, DType::MXFP4, DType::Q2_K, DType::Q3_K, DType::Q4_K,
                            DType::Q5_K, DType::Q6_K, DType::IQ4_XS}) {
    const Stored stored(dtype, kPanelOutputs, kInputs);
    const WeightLayout layout = panel_layout(stored.tensor);
    std::vector<std::byte> panel(panel_bytes(layout, kInputs));
    pack_panel(stored.tensor, layout, 0, panel);
    const auto expected = products(*tables.front(), layout, panel, rows, kRows, kInputs);
    for (const Kernels* k : tables) {
      if (k->matmul(layout).activation_type != ActivationType::Q8) continue;
      EXPECT_EQ(products(*k, layout, panel, rows, kRows, kInputs), expected)
          << dtype_name(dtype) << ", " << k->name << " and " << tables.front()->name;
    }
  }
}

class EveryTable : public testing::TestWithParam<const Kernels*> {
 protected:
  const Kernels& k_ = *GetParam();
};

// The largest and the smallest bytes, and a weight of -128, which a file may have.
TEST_P(EveryTable, MultipliesTheExtremesOfBytesExactly) {
  for (const int weight : {-128, -127, 127, 0}) {
    for (const float x : {-3.0f, 3.0f}) {
      std::vector<std::byte> block(34 * 32);
      for (std::size_t o = 0; o < 32; ++o) {
        block[o * 34 + 1] = std::byte{0x3c};  // a scale of 1
        for (std::size_t i = 0; i < 32; ++i) block[o * 34 + 2 + i] = static_cast<std::byte>(weight);
      }
      std::vector<std::byte> panel(panel_bytes(WeightLayout::Q8_0, 32));
      pack_panel({"w", DType::Q8_0, {32, 32}, block}, WeightLayout::Q8_0, 0, panel);
      std::vector<float> row(32, x);
      std::int8_t bytes[32];
      float scale;
      BlockSums sums;
      k_.to_q8(row.data(), 32, bytes, &scale, &sums);
      EXPECT_EQ(sums.all, x > 0.0f ? 32 * 127 : -32 * 127);
      EXPECT_EQ(sums.first_half, x > 0.0f ? 16 * 127 : -16 * 127);
      for (const std::size_t rows : {std::size_t{1}, k_.matmul(WeightLayout::Q8_0).max_rows}) {
        std::vector<float> out(rows * 32);  // the same row many times: the strides are 0
        k_.matmul(WeightLayout::Q8_0)
            .tile({panel.data(), 32, bytes, 0, &scale, &sums, 0, out.data(), 32}, rows);
        for (const float got : out) EXPECT_FLOAT_EQ(got, 32.0f * x * static_cast<float>(weight));
      }
    }
  }
}

// Bytes from the smallest to the largest, scales of any size and sign.
TEST_P(EveryTable, MultipliesFloatsWithBytesWhoseScaleIsTheirInputs) {
  for (const std::size_t inputs : {1u, 7u, 64u}) {
    const auto scales = random_floats(inputs, 10);
    std::mt19937 engine(11);
    std::vector<std::byte> panel(panel_bytes(WeightLayout::Q8ByInput, inputs));
    std::vector<float> weights;
    for (std::size_t i = 0; i < inputs; ++i) {
      std::byte* const to = &panel[panel_bytes(WeightLayout::Q8ByInput, i)];
      std::memcpy(to, &scales[i], 4);
      for (std::size_t o = 0; o < kPanelOutputs; ++o) {
        const auto byte = static_cast<std::int8_t>(o == 0 ? -128 : o == 1 ? 127 : engine());
        std::memcpy(to + 4 + o, &byte, 1);
        weights.push_back(scales[i] * static_cast<float>(byte));
      }
    }
    for (const bool add : {false, true}) {
      expect_product(
          k_, WeightLayout::Q8ByInput, panel.data(), inputs, add,
          [&](std::size_t o, std::size_t i) { return double{weights[i * kPanelOutputs + o]}; });
      if (!k_.two_panels) continue;
      std::vector<std::byte> panels = panel;
      panels.insert(panels.end(), panel.begin(), panel.end());
      panels.back() ^= std::byte{1};  // another weight in the second panel
      expect_two_panels(k_, WeightLayout::Q8ByInput, {panels.data(), &panels[panel.size()]}, inputs,
                        add);
    }
  }
}

TEST_P(EveryTable, QuantisesToTheNearestByteAndZerosToZeros) {
  std::vector<float> x = random_floats(320, 9);
  std::fill_n(x.begin() + 64, 32, 0.0f);
  std::vector<std::int8_t> bytes(x.size());
  std::vector<float> scales(10);
  std::vector<BlockSums> sums(10);
  k_.to_q8(x.data(), x.size(), bytes.data(), scales.data(), sums.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_LE(std::abs(x[i] - scales[i / 32] * static_cast<float>(bytes[i])),
              scales[i / 32] * 0.5001f);
  }
  for (std::size_t b = 0; b < sums.size(); ++b) {
    const auto* const block = &bytes[b * 32];
    EXPECT_EQ(sums[b].all, std::accumulate(block, block + 32, 0));
    EXPECT_EQ(sums[b].first_half, std::accumulate(block, block + 16, 0));
  }
  EXPECT_EQ(scales[2], 0.0f);
  EXPECT_EQ(sums[2].all, 0);
  EXPECT_EQ(sums[2].first_half, 0);
}

// 127 / 1e-38 is no float.
TEST_P(EveryTable, QuantisesTinyNumbersToZeros) {
  std::vector<float> x(32, 1e-38f);
  x[7] = 0.0f;
  std::int8_t bytes[32];
  float scale;
  BlockSums sums;
  k_.to_q8(x.data(), 32, bytes, &scale, &sums);
  for (const std::int8_t byte : bytes) EXPECT_EQ(byte, 0);
  EXPECT_LE(scale, 1e-38f);
  EXPECT_EQ(sums.all, 0);
}

// A single NaN or infinity among many numbers must not be lost: nobody would notice the error
// later.
TEST_P(EveryTable, LosesNoNumberThatIsNone) {
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    for (const std::size_t at : {0u, 5u, 31u}) {
      std::vector<float> x = random_floats(96, 9);
      x[32 + at] = bad;
      std::vector<std::int8_t> bytes(96);
      float scales[3];
      BlockSums sums[3];
      k_.to_q8(x.data(), 96, bytes.data(), scales, sums);
      EXPECT_TRUE(std::isfinite(scales[0]) && std::isnan(scales[1]) && std::isfinite(scales[2]));
      const Stored stored(DType::Q8_0, 32, 96);
      std::vector<std::byte> panel(panel_bytes(WeightLayout::Q8_0, 96));
      pack_panel(stored.tensor, WeightLayout::Q8_0, 0, panel);
      std::vector<float> out(32);
      k_.matmul(WeightLayout::Q8_0)
          .tile({panel.data(), 96, bytes.data(), 96, scales, sums, 3, out.data(), 32}, 1);
      for (const float got : out) EXPECT_TRUE(std::isnan(got));
    }
  }
}

// The sums of a block of Q8_K, as numbers and as bf16.
void expect_sums(const Q8KBlock& block) {
  for (std::size_t i = 0; i < Q8KBlock::kSize; i += 16) {
    const int sum = std::accumulate(block.bytes + i, block.bytes + i + 16, 0);
    const auto& [sixteens, rest] = block.sums_as_bf16[i / 16];
    EXPECT_EQ(as_float(sixteens) + as_float(rest), static_cast<float>(sum));
    const BlockSums& sums = block.sums[i / kQuantBlock];
    EXPECT_EQ(i % kQuantBlock == 0 ? sums.first_half : sums.all - sums.first_half, sum);
  }
}

TEST_P(EveryTable, QuantisesBlocksOf256) {
  if (k_.to_q8_k == nullptr) GTEST_SKIP() << "not needed by this table";
  constexpr std::size_t kSize = Q8KBlock::kSize;
  for (const float factor : {1.0f, 1e-38f, 0.0f, 1e37f}) {
    std::vector<float> x = random_floats(2 * kSize, 9);
    for (float& value : x) value *= factor;
    std::fill_n(x.begin() + 32, 32, 3.0f * factor);  // the largest sums
    std::vector<Q8KBlock> blocks(2);
    k_.to_q8_k(x.data(), x.size(), blocks.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Q8KBlock& block = blocks[i / kSize];
      const float rounded = block.scale * static_cast<float>(block.bytes[i % kSize]);
      if (factor == 1e-38f) {
        EXPECT_EQ(rounded, 0.0f);
      } else {
        EXPECT_LE(std::abs(x[i] - rounded), block.scale * 0.5001f);
      }
    }
    for (const Q8KBlock& block : blocks) expect_sums(block);
  }
  for (const float bad : {NAN, -NAN, INFINITY, -INFINITY}) {
    std::vector<float> x = random_floats(2 * kSize, 9);
    x[kSize + 77] = bad;
    std::vector<Q8KBlock> blocks(2);
    k_.to_q8_k(x.data(), x.size(), blocks.data());
    EXPECT_TRUE(std::isfinite(blocks[0].scale) && std::isnan(blocks[1].scale));
    for (const Q8KBlock& block : blocks) expect_sums(block);
    for (const std::size_t rows : {1u, 20u}) {
      const Stored stored(DType::Q4_K, 32, kSize);
      std::vector<std::byte> panel(panel_bytes(WeightLayout::Q4_K, kSize));
      pack_panel(stored.tensor, WeightLayout::Q4_K, 0, panel);
      const std::vector<Q8KBlock> all(rows, blocks[1]);
      std::vector<float> out(rows * 32);
      k_.matmul(WeightLayout::Q4_K)
          .tile({.panel = panel.data(),
                 .inputs = kSize,
                 .rows = all.data(),
                 .row_stride = 1,
                 .out = out.data(),
                 .out_stride = 32},
                rows);
      for (const float got : out) EXPECT_TRUE(std::isnan(got));
    }
  }
}

TEST_P(EveryTable, NormsRowsOfAnyWidth) {
  for (const std::size_t n : {1u, 3u, 16u, 37u, 64u, 333u}) {
    const auto x = random_floats(n, 1), weight = random_floats(n, 2);
    std::vector<float> out(n + 1, -7.0f);
    k_.rms_norm(x.data(), weight.data(), n, 1e-5f, out.data());
    double squares = 0.0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(out[i], weight[i] * (x[i] * scale), 1e-5 * std::abs(weight[i] * x[i] * scale));
    }
    EXPECT_EQ(out[n], -7.0f);
  }
}

TEST_P(EveryTable, DividesRowsOfAnyWidthByTheirLengthAlsoInPlace) {
  for (const std::size_t n : {1u, 3u, 16u, 37u, 64u, 333u}) {
    auto x = random_floats(n, 1);
    std::vector<float> out(n + 1, -7.0f);
    k_.l2_norm(x.data(), n, 0.5f, 0.25f, out.data());
    double squares = 0.5;
    for (const float value : x) squares += static_cast<double>(value) * value;
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = 0.25 * x[i] / std::sqrt(squares);
      EXPECT_NEAR(out[i], expected, 1e-5 * std::abs(expected));
    }
    EXPECT_EQ(out[n], -7.0f);
    k_.l2_norm(x.data(), n, 0.5f, 0.25f, x.data());
    EXPECT_TRUE(std::equal(x.begin(), x.end(), out.begin()));
  }
}

// Two tokens, so that the second uses the state of the first; fewer values than a panel has.
TEST_P(EveryTable, DeltaRuleIsThatOfItsFormulaAndWritesNoValueTooMany) {
  for (const std::size_t n_keys : {1u, 7u, 8u, 37u, 128u}) {
    for (const std::size_t n_values : {1u, 5u, 32u}) {
      auto state = random_floats(n_keys * kPanelOutputs, 1);
      std::vector<double> expected(state.begin(), state.end());
      for (unsigned token = 0; token < 2; ++token) {
        const auto q = random_floats(n_keys, 2 + token), k = random_floats(n_keys, 4 + token);
        const auto v = random_floats(n_values, 6 + token);
        std::vector<float> out(n_values + 1, -7.0f);
        const float kept = 0.75f, write_strength = 0.5f / static_cast<float>(n_keys);
        k_.delta_rule({state.data(), q.data(), k.data(), n_keys, kept, write_strength, v.data(),
                       n_values, out.data()});
        for (std::size_t c = 0; c < n_values; ++c) {
          double held = 0.0, sum = 0.0, size = 1.0;
          for (std::size_t i = 0; i < n_keys; ++i) {
            held += k[i] * (expected[i * kPanelOutputs + c] *= kept);
            size += std::abs(k[i] * expected[i * kPanelOutputs + c]);
          }
          for (std::size_t i = 0; i < n_keys; ++i) {
            double& s = expected[i * kPanelOutputs + c];
            s += k[i] * write_strength * (v[c] - held);
            sum += q[i] * s;
            size += std::abs(q[i] * s);
          }
          EXPECT_NEAR(out[c], sum, 1e-6 * size) << n_keys << ", " << n_values;
        }
        EXPECT_EQ(out[n_values], -7.0f);
      }
    }
  }
}

TEST_P(EveryTable, LayerNormsRowsOfAnyWidthAlsoInPlace) {
  for (const std::size_t n : {1u, 3u, 16u, 37u, 64u, 333u}) {
    auto x = random_floats(n, 1);
    const auto weight = random_floats(n, 2), bias = random_floats(n, 3);
    for (float& value : x) value += 5.0f;  // a mean that matters
    std::vector<float> out(n + 1, -7.0f);
    k_.layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5f, out.data());
    double sum = 0.0, squares = 0.0;
    for (const float value : x) sum += value;
    const double mean = sum / static_cast<double>(n);
    for (const float value : x) squares += (value - mean) * (value - mean);
    const double scale = 1.0 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    for (std::size_t i = 0; i < n; ++i) {
      const double expected = weight[i] * ((x[i] - mean) * scale) + bias[i];
      EXPECT_NEAR(out[i], expected, 2e-5 * std::max(1.0, std::abs(expected))) << n;
    }
    EXPECT_EQ(out[n], -7.0f);
    k_.layer_norm(x.data(), weight.data(), bias.data(), n, 1e-5f, x.data());
    EXPECT_TRUE(std::equal(x.begin(), x.end(), out.begin()));

    const std::vector<float> ones(n, 1.0f), zeros(n);
    k_.layer_norm(x.data(), nullptr, nullptr, n, 1e-5f, out.data());
    k_.layer_norm(x.data(), ones.data(), zeros.data(), n, 1e-5f, x.data());
    EXPECT_TRUE(std::equal(x.begin(), x.end(), out.begin()));
  }
}

TEST_P(EveryTable, ClipsOnBothSidesAndLeavesNaN) {
  for (const std::size_t n : {1u, 16u, 37u}) {
    std::vector<float> x = random_floats(n, 1), expected = x;
    for (float& value : expected) value = std::clamp(value, -0.5f, 0.5f);
    k_.clip(x.data(), n, 0.5f);
    EXPECT_EQ(x, expected);
  }
  float nan = std::nanf("");
  k_.clip(&nan, 1, 0.5f);
  EXPECT_TRUE(std::isnan(nan));
}

// The activations, by ActivationFunction, with and without up.
TEST_P(EveryTable, ActivationsAreThoseOfTheirFormulasAlsoFarOut) {
  constexpr double (*kFormulas[])(double) = {
      [](double x) { return x / (1.0 + std::exp(-x)); },  // SiLU
      [](double x) {                                      // GELU, with tanh
        const double y = std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x * x * x);
        return x / (1.0 + std::exp(-2.0 * y));
      },
      [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); },  // GELU
      [](double x) { return std::max(x, 0.0); },                               // ReLU
      [](double x) { return 1.0 / (1.0 + std::exp(-x)); },                     // sigmoid
      [](double x) { return x; },                                              // identity
  };
  static_assert(std::size(kFormulas) == kActivationFunctions);
  for (std::size_t f = 0; f < std::size(kFormulas); ++f) {
    // GELU multiplies with e^(-x^2 / 2): rounding the exponent is an error of x^2 / 2 units.
    const double allowed = f == 2 ? 3e-6 : 1e-6;
    std::vector<float> gate = random_floats(37, 1), up = random_floats(37, 2), out(38, -7.0f);
    const float far[] = {-1e30f, -200.0f, -88.5f, -87.0f, 0.0f, 87.0f, 88.5f, 200.0f, 1e30f};
    std::copy(std::begin(far), std::end(far), gate.begin());
    k_.activate[f](gate.data(), up.data(), 37, out.data());
    for (std::size_t i = 0; i < 37; ++i) {
      const double expected = kFormulas[f](gate[i]) * up[i];
      EXPECT_NEAR(out[i], expected, allowed * std::abs(expected) + 1e-35) << f << ": " << gate[i];
    }
    EXPECT_EQ(out[37], -7.0f);
    k_.activate[f](gate.data(), nullptr, 37, out.data());
    for (std::size_t i = 0; i < 37; ++i) {
      const double expected = kFormulas[f](gate[i]);
      EXPECT_NEAR(out[i], expected, allowed * std::abs(expected) + 1e-35) << f << ": " << gate[i];
    }
    EXPECT_EQ(out[37], -7.0f);
    gate[0] = std::nanf("");
    gate[1] = std::numeric_limits<float>::infinity();
    k_.activate[f](gate.data(), nullptr, 37, out.data());
    EXPECT_TRUE(std::isnan(out[0]));
    EXPECT_EQ(out[1], static_cast<float>(kFormulas[f](gate[1])));
  }
}

TEST_P(EveryTable, AddScaledAddsWithOneFactorAndNoFurther) {
  const std::vector<float> y = random_floats(37, 1), before = random_floats(37, 2);
  std::vector<float> x = before;
  x.push_back(-7.0f);
  k_.add_scaled(0.3f, y.data(), 37, x.data());
  for (std::size_t i = 0; i < 37; ++i) {
    EXPECT_NEAR(x[i], before[i] + 0.3 * static_cast<double>(y[i]), 0x1p-22) << i;
  }
  EXPECT_EQ(x[37], -7.0f);
}

TEST_P(EveryTable, SoftCapIsThatOfTheFormulaAlsoFarOut) {
  std::vector<float> x = random_floats(37, 1), out;
  const float far[] = {-1e30f, -900.0f, -88.0f, 1e-3f, 0.0f, 87.0f, 900.0f, INFINITY, -INFINITY};
  std::copy(std::begin(far), std::end(far), x.begin());
  out = x;
  out.push_back(-7.0f);
  k_.soft_cap(out.data(), 37, 0.25f, 30.0f);
  for (std::size_t i = 0; i < 37; ++i) {
    const double expected = 30.0 * std::tanh(0.25 * x[i] / 30.0);
    EXPECT_NEAR(out[i], expected, 30.0 * 0x1p-22) << x[i];
  }
  EXPECT_EQ(out[37], -7.0f);
  x[0] = std::nanf("");
  k_.soft_cap(x.data(), 1, 1.0f, 30.0f);
  EXPECT_TRUE(std::isnan(x[0]));
}

TEST_P(EveryTable, AlibiAddsALineToTheScaledScores) {
  const std::vector<float> x = random_floats(37, 1);
  for (std::size_t n : {1u, 16u, 37u}) {
    std::vector<float> out = x;
    out.push_back(-7.0f);
    k_.alibi(out.data(), n, 0.25f, 0.6f, -1000.0f);
    for (std::size_t i = 0; i < n; ++i) {
      const double line = 0.6 * (-1000.0 + static_cast<double>(i));
      EXPECT_NEAR(out[i], 0.25 * x[i] + line, 1000.0 * 0x1p-23) << n << ", " << i;
    }
    EXPECT_EQ(out[n], n < 37 ? x[n] : -7.0f);
  }
}

// Block after block gives the softmax of all scores except the masked ones.
TEST_P(EveryTable, SoftmaxByBlocksIsTheSoftmax) {
  std::vector<float> scores = random_floats(192, 6);
  for (float& score : scores) score *= 20.0f;
  for (std::size_t i = 100; i < 128; ++i) scores[i] = -INFINITY;
  const float scale = 0.125f, kLog2E = std::numbers::log2e_v<float>;
  double total = 0.0;
  for (const float score : scores) total += std::exp(static_cast<double>(score * scale));
  std::vector<double> expected;
  for (const float score : scores) expected.push_back(std::exp(score * scale) / total);

  float max = -INFINITY, sum = 0.0f;
  for (std::size_t block = 0; block < 192; block += 64) {
    const float factor = k_.softmax_block(scores.data() + block, 64, scale * kLog2E, &max, &sum);
    k_.scale(factor, block, scores.data());
  }
  for (std::size_t i = 0; i < 192; ++i) EXPECT_NEAR(scores[i] / sum, expected[i], 1e-6) << i;
}

TEST_P(EveryTable, SoftmaxLosesNoScoreThatIsNoNumber) {
  for (const float bad : {NAN, INFINITY}) {
    for (std::size_t at = 0; at < 64; ++at) {
      std::vector<float> scores = random_floats(64, 6);
      scores[at] = bad;
      float max = -INFINITY, sum = 0.0f;
      k_.softmax_block(scores.data(), 64, 0.125f, &max, &sum);
      EXPECT_TRUE(std::isnan(sum)) << bad << " at " << at;
    }
  }
}

// The largest power is 2^0 also if the rounding of a score is larger than 1.
TEST_P(EveryTable, SoftmaxOfHugeScoresIsFinite) {
  std::vector<float> scores(32, 3e9f);
  scores[0] = 7.7777777e9f;
  float max = -INFINITY, sum = 0.0f;
  k_.softmax_block(scores.data(), 32, 1.7f, &max, &sum);
  EXPECT_EQ(scores[0], 1.0f);
  EXPECT_EQ(sum, 1.0f);
}

TEST_P(EveryTable, RoundsToBf16AsTheTextbookDoes) {
  std::vector<float> x = random_floats(100, 8);
  x[0] = INFINITY;
  x[1] = -0.0f;
  x[2] = 1e-40f;
  x[3] = 0x1.01p0f;  // a tie, rounded to even
  x[4] = 0x1.03p0f;
  std::vector<std::uint16_t> got(100), expected(100);
  k_.to_bf16(x.data(), 100, got.data());
  f32_to_bf16(x, expected);
  EXPECT_TRUE(got[2] == expected[2] || got[2] == 0) << got[2];
  got[2] = expected[2];
  EXPECT_EQ(got, expected);
}

// All numbers of f16, the halves between two neighbours (ties), and their float neighbours.
TEST_P(EveryTable, RoundsToF16AsTheTextbookDoes) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t half[] = {static_cast<std::uint16_t>(bits),
                                  static_cast<std::uint16_t>(bits + 1)};
    float number[2];
    f16_to_f32(half, number);
    const float tie = (number[0] + number[1]) / 2.0f;
    x.insert(x.end(),
             {number[0], tie, std::nextafter(tie, INFINITY), std::nextafter(tie, -INFINITY)});
  }
  x.insert(x.end(), {65519.99f, 65520.0f, -65520.0f, 1e30f, -1e30f, 1e-40f, -1e-10f});
  std::vector<std::uint16_t> got(x.size()), expected(x.size());
  k_.to_f16(x.data(), x.size(), got.data());
  f32_to_f16(x, expected);
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i])) {
      EXPECT_GT(got[i] & 0x7fff, 0x7c00) << i;
    } else {
      EXPECT_EQ(got[i], expected[i]) << x[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, EveryTable, testing::ValuesIn(runnable_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name); });

// A table that this processor can't run counts as a skipped test.
class CompiledTable : public testing::TestWithParam<const Kernels*> {};
TEST_P(CompiledTable, IsTestedHere) {
  const auto runnable = runnable_kernels();
  if (std::ranges::find(runnable, GetParam()) == runnable.end()) {
    GTEST_SKIP() << "this processor does not run " << GetParam()->name;
  }
}
INSTANTIATE_TEST_SUITE_P(Isa, CompiledTable, testing::ValuesIn(compiled_kernels()),
                         [](const auto& parameter) { return std::string(parameter.param->name); });

}  // namespace
}  // namespace stagecraft
