#include "operators/kernels/panel_matrix.h"
#include "operators/kernels/shuffled.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "operators/dequantize.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"
#include "operators/k_quant_block.h"
#include "operators/kernels/k_quant_panel.h"

namespace stagecraft {
namespace {

constexpr std::size_t kScaleBytes = kPanelOutputs * sizeof(std::uint16_t);

std::span<const std::byte> row_bytes(const StoredTensor& matrix, std::size_t row) {
  const std::size_t bytes = matrix.bytes.size() / matrix.shape[0];
  return matrix.bytes.subspan(row * bytes, bytes);
}

// Rows of bytes: row i begins at begin + i * stride.
struct StoredRows {
  const std::byte* begin;
  std::size_t stride;
  const std::byte* row(std::size_t i) const { return begin + i * stride; }
};
StoredRows rows_from(const StoredTensor& matrix, std::size_t first) {
  const std::span<const std::byte> bytes = row_bytes(matrix, first);
  return {bytes.data(), bytes.size()};
}

typedef std::uint32_t Four __attribute__((vector_size(16)));

// Transposes four words of four rows: to[i][row] = change(from[row][i]).
template <class Change>
void transpose_four(const StoredRows& from_rows, std::size_t row, std::size_t i, std::byte* to,
                    Change change) {
  Four a, b, c, d;
  std::memcpy(&a, from_rows.row(row) + 4 * i, sizeof a);
  std::memcpy(&b, from_rows.row(row + 1) + 4 * i, sizeof b);
  std::memcpy(&c, from_rows.row(row + 2) + 4 * i, sizeof c);
  std::memcpy(&d, from_rows.row(row + 3) + 4 * i, sizeof d);
  const Four ab_low = shuffled<0, 4, 1, 5>(a, b);
  const Four ab_high = shuffled<2, 6, 3, 7>(a, b);
  const Four cd_low = shuffled<0, 4, 1, 5>(c, d);
  const Four cd_high = shuffled<2, 6, 3, 7>(c, d);
  const Four columns[] = {
      shuffled<0, 1, 4, 5>(ab_low, cd_low), shuffled<2, 3, 6, 7>(ab_low, cd_low),
      shuffled<0, 1, 4, 5>(ab_high, cd_high), shuffled<2, 3, 6, 7>(ab_high, cd_high)};
  for (const Four& column : columns) {
    const Four changed = change(column);
    std::memcpy(to + (i++ * kPanelOutputs + row) * 4, &changed, sizeof changed);
  }
}

// Transposes values of type T of up to 32 rows: to[i][row] = change(from_rows.row(row)[i]). It
// takes sixteen values of each row at a time, so that the cache lines that are written stay in the
// cache until they are full.
template <class T, class Change>
void transpose(const StoredRows& from_rows, std::size_t rows, std::size_t count, std::byte* to,
               Change change) {
  constexpr std::size_t kStep = 16;
  for (std::size_t begin = 0; begin < count; begin += kStep) {
    const std::size_t end = std::min(count, begin + kStep);
    std::size_t row = 0;
    if constexpr (sizeof(T) == 4) {
      for (; count % 4 == 0 && row + 4 <= rows; row += 4) {
        for (std::size_t i = begin; i < end; i += 4) transpose_four(from_rows, row, i, to, change);
      }
    }
    for (; row < rows; ++row) {
      const std::byte* from = from_rows.row(row);
      for (std::size_t i = begin; i < end; ++i) {
        T value;
        std::memcpy(&value, from + i * sizeof(T), sizeof(T));
        value = change(value);
        std::memcpy(to + (i * kPanelOutputs + row) * sizeof(T), &value, sizeof(T));
      }
    }
  }
}

const auto kAsIs = [](auto value) { return value; };

// The layout of a block of quantised weights in a file.
struct BlockLayout {
  std::size_t bytes;
  std::size_t quants;  // byte at which the integers begin; scale and minimum come first
  std::size_t words;   // 32-bit words of integers
};
BlockLayout layout_of(DType dtype) {
  if (dtype == DType::Q8_0) return {34, 2, 8};
  if (dtype == DType::Q4_0) return {18, 2, 4};
  return {20, 4, 4};  // Q4_1
}

void pack_blocks(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                 std::span<std::byte> panel) {
  const BlockLayout layout = layout_of(matrix.dtype);
  const std::size_t blocks = matrix.shape[1] / kQuantBlock;
  const bool has_minima = matrix.dtype == DType::Q4_1;
  const std::uint32_t bias = matrix.dtype == DType::Q8_0 ? 0x80808080u : 0u;
  std::byte* to = panel.data();
  StoredRows block = rows_from(matrix, first);
  for (std::size_t b = 0; b < blocks; ++b, block.begin += layout.bytes) {
    const StoredRows quants{block.begin + layout.quants, block.stride};
    // A weight + 128 differs from two's complement only in the highest bit.
    transpose<std::uint32_t>(quants, rows, layout.words, to,
                             [bias](auto words) { return words ^ bias; });
    to += layout.words * 4 * kPanelOutputs;
    transpose<std::uint16_t>(block, rows, has_minima ? 2 : 1, to, kAsIs);
    to += kScaleBytes * (has_minima ? 2 : 1);
  }
}

void pack_as_q8_0(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                  std::span<std::byte> panel) {
  const std::size_t stride = row_bytes(matrix, first).size();
  std::vector<std::byte> blocks(rows * matrix.shape[1] / kQuantBlock *
                                dtype_block(DType::Q8_0).bytes);
  blocks_as_q8_0(matrix.dtype, matrix.bytes.subspan(first * stride, rows * stride), blocks);
  pack_blocks({{}, DType::Q8_0, {rows, matrix.shape[1]}, blocks}, 0, rows, panel);
}

void pack_as_f32(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                 std::span<std::byte> panel) {
  std::vector<float> values(matrix.shape[1]);
  const auto bytes = std::as_bytes(std::span(values));
  for (std::size_t row = 0; row < rows; ++row) {
    read_row(matrix, first + row, values);
    transpose<std::uint32_t>({bytes.data(), 0}, 1, values.size(),
                             panel.data() + row * sizeof(float), kAsIs);
  }
}

void pack_as_bf16(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                  std::span<std::byte> panel) {
  std::vector<float> values(matrix.shape[1]);
  std::vector<std::uint16_t> halves(values.size());
  const auto bytes = std::as_bytes(std::span(halves));
  for (std::size_t row = 0; row < rows; ++row) {
    read_row(matrix, first + row, values);
    f32_to_bf16(values, halves);
    transpose<std::uint32_t>({bytes.data(), 0}, 1, values.size() / 2,
                             panel.data() + row * sizeof(std::uint32_t), kAsIs);
  }
}

}  // namespace

WeightLayout panel_layout(const StoredTensor& matrix) {
  const bool even = matrix.shape[1] % 2 == 0;
  switch (matrix.dtype) {
    case DType::F32:
      return WeightLayout::F32;
    case DType::F16:
      return WeightLayout::F16;
    case DType::BF16:
      return even ? WeightLayout::BF16 : WeightLayout::F32;
    case DType::Q8_0:
    case DType::Q5_0:
    case DType::IQ4_NL:
      return WeightLayout::Q8;
    case DType::Q4_0:
      return WeightLayout::Q4;
    case DType::Q4_1:
      return WeightLayout::Q4_1;
    case DType::Q4_K:
      return WeightLayout::Q4_K;
    case DType::Q5_K:
      return WeightLayout::Q5_K;
    case DType::Q6_K:
      return WeightLayout::Q6_K;
    case DType::IQ4_XS:
      return WeightLayout::IQ4_XS;
    // MXFP4: a 4-bit float times a power of two is a bf16 number. Q5_1, Q2_K, Q3_K and Q8_K have
    // minima or scales that no kernel knows, so their weights are rounded to bf16.
    default:
      return WeightLayout::BF16;
  }
}

bool loses_nothing(DType dtype) {
  switch (dtype) {
    case DType::Q5_1:
    case DType::Q2_K:
    case DType::Q3_K:
    case DType::Q8_K:
      return false;
    default:
      return true;
  }
}

std::string_view layout_name(WeightLayout layout) {
  constexpr std::array<std::string_view, kLayouts> kNames = {
      "F32",  "F16",  "BF16", "BF16", "Q8_0",   "Q4_0",
      "Q4_1", "Q4_K", "Q5_K", "Q6_K", "IQ4_XS", "Q8_0 by input"};
  return kNames[static_cast<std::size_t>(layout)];
}

std::size_t panel_bytes(WeightLayout layout, std::size_t inputs) {
  const std::size_t blocks = inputs / kQuantBlock;
  switch (layout) {
    case WeightLayout::F32:
      return inputs * kPanelOutputs * 4;
    case WeightLayout::F16:
    case WeightLayout::BF16:
    case WeightLayout::RoundedBF16:
      return inputs * kPanelOutputs * 2;
    case WeightLayout::Q8:
      return blocks * (kQuantBlock * kPanelOutputs + kScaleBytes);
    case WeightLayout::Q4:
      return blocks * (kQuantBlock / 2 * kPanelOutputs + kScaleBytes);
    case WeightLayout::Q4_1:
      return blocks * (kQuantBlock / 2 * kPanelOutputs + 2 * kScaleBytes);
    case WeightLayout::Q4_K:
      return inputs / kKBlock * dtype_block(DType::Q4_K).bytes * kPanelOutputs;
    case WeightLayout::Q5_K:
      return inputs / kKBlock * dtype_block(DType::Q5_K).bytes * kPanelOutputs;
    case WeightLayout::Q6_K:
      return inputs / kKBlock * dtype_block(DType::Q6_K).bytes * kPanelOutputs;
    case WeightLayout::IQ4_XS:
      return inputs / kKBlock * dtype_block(DType::IQ4_XS).bytes * kPanelOutputs;
    case WeightLayout::Q8ByInput:
      return inputs * (sizeof(float) + kPanelOutputs);
  }
  return 0;
}

void pack_panel(const StoredTensor& matrix, std::size_t first, std::span<std::byte> panel) {
  const std::size_t inputs = matrix.shape[1];
  const std::size_t rows = std::min(kPanelOutputs, matrix.shape[0] - first);
  if (rows < kPanelOutputs) std::ranges::fill(panel, std::byte{});
  const StoredRows stored = rows_from(matrix, first);
  // Prefetch all of it in order, before it is read four rows at a time.
  fetch_ahead(stored.begin, rows * stored.stride);
  switch (matrix.dtype) {
    case DType::F32:
      return transpose<std::uint32_t>(stored, rows, inputs, panel.data(), kAsIs);
    case DType::F16:
      return transpose<std::uint16_t>(stored, rows, inputs, panel.data(), kAsIs);
    case DType::BF16:
      if (inputs % 2 != 0) return pack_as_f32(matrix, first, rows, panel);
      return transpose<std::uint32_t>(stored, rows, inputs / 2, panel.data(), kAsIs);
    case DType::Q8_0:
    case DType::Q4_0:
    case DType::Q4_1:
      return pack_blocks(matrix, first, rows, panel);
    case DType::Q5_0:
    case DType::IQ4_NL:
      return pack_as_q8_0(matrix, first, rows, panel);
    case DType::Q4_K:
    case DType::Q5_K:
    case DType::Q6_K:
    case DType::IQ4_XS:
      return pack_k_quant_panel(matrix, first, rows, panel);
    default:
      return pack_as_bf16(matrix, first, rows, panel);
  }
}

void read_row(const StoredTensor& matrix, std::size_t row, std::span<float> out) {
  const std::span<const std::byte> bytes = row_bytes(matrix, row);
  if (matrix.dtype == DType::F32) {
    std::memcpy(out.data(), bytes.data(), bytes.size());
  } else if (is_quantized(matrix.dtype)) {
    dequantize(matrix.dtype, bytes, out);
  } else {  // two bytes each, which need not be aligned in the file
    std::array<std::uint16_t, 256> part;
    for (std::size_t i = 0; i < out.size(); i += part.size()) {
      const std::size_t n = std::min(part.size(), out.size() - i);
      std::memcpy(part.data(), bytes.data() + 2 * i, 2 * n);
      (matrix.dtype == DType::F16 ? f16_to_f32 : bf16_to_f32)({part.data(), n}, out.subspan(i, n));
    }
  }
}

}  // namespace stagecraft
