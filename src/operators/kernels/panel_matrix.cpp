#include "operators/kernels/panel_matrix.h"
#include "operators/kernels/shuffled.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "operators/k_quant_block.h"
#include "operators/kernels/instruction_sets.h"
#include "operators/kernels/k_quant_panel.h"
#include "operators/read_row.h"

namespace stagecraft {
namespace {

// Rows of bytes: row i begins at begin + i * stride.
struct StoredRows {
  const std::byte* begin;
  std::size_t stride;
  const std::byte* row(std::size_t i) const { return begin + i * stride; }
};
StoredRows rows_from(const StoredTensor& matrix, std::size_t first) {
  const std::size_t bytes = matrix.bytes.size() / matrix.shape[0];
  return {matrix.bytes.subspan(first * bytes).data(), bytes};
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

// Where a block of 32 weights has its parts in a file.
struct BlockLayout {
  std::size_t scale_bytes;  // scale and minimum, at the beginning
  std::size_t fifth_bits;   // byte at which the fifth bits begin; 0: there are none
  std::size_t quants;       // byte at which the integers begin
  std::size_t words = 4;    // 32-bit words of integers
};
BlockLayout layout_of(DType dtype) {
  switch (dtype) {
    case DType::Q8_0:
      return {2, 0, 2, 8};
    case DType::Q4_1:
      return {4, 0, 4};
    case DType::Q5_0:
      return {2, 2, 6};
    case DType::Q5_1:
      return {4, 4, 8};
    case DType::MXFP4:
      return {1, 0, 1};
    case DType::Q4_0:
    case DType::IQ4_NL:
      return {2, 0, 2};
    default:
      throw std::logic_error("a type without blocks of 32");
  }
}

// Bit 4w + i becomes bit 8i + w. Words: one word or a vector of words.
constexpr auto kBytePerInput = [](auto words) {
  auto out = words & 0u;
  for (int w = 0; w < 8; ++w) {
    for (int i = 0; i < 4; ++i) out |= (words >> (4 * w + i) & 1u) << (8 * i + w);
  }
  return out;
};

void pack_blocks(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                 std::span<std::byte> panel) {
  const BlockLayout layout = layout_of(matrix.dtype);
  const std::size_t blocks = matrix.shape[1] / kQuantBlock;
  const std::uint32_t bias = matrix.dtype == DType::Q8_0 ? 0x80808080u : 0u;
  std::byte* to = panel.data();
  StoredRows block = rows_from(matrix, first);
  for (std::size_t b = 0; b < blocks; ++b, block.begin += dtype_block(matrix.dtype).bytes) {
    const StoredRows quants{block.begin + layout.quants, block.stride};
    // A weight + 128 differs from two's complement only in the highest bit.
    transpose<std::uint32_t>(quants, rows, layout.words, to,
                             [bias](auto words) { return words ^ bias; });
    to += layout.words * 4 * kPanelOutputs;
    if (layout.fifth_bits != 0) {
      const StoredRows bits{block.begin + layout.fifth_bits, block.stride};
      transpose<std::uint32_t>(bits, rows, 1, to, kBytePerInput);
      to += 4 * kPanelOutputs;
    }
    if (layout.scale_bytes == 1) {
      transpose<std::uint8_t>(block, rows, 1, to, kAsIs);
    } else {
      transpose<std::uint16_t>(block, rows, layout.scale_bytes / 2, to, kAsIs);
    }
    to += layout.scale_bytes * kPanelOutputs;
  }
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

// The type whose numbers a layout holds, in as many bytes as in a file; for all but Q8ByInput, the
// last.
constexpr std::array<DType, kLayouts - 1> kTypeOf = {
    DType::F32,  DType::F16,  DType::BF16, DType::BF16,   DType::Q8_0,  DType::Q4_0,
    DType::Q4_1, DType::Q5_0, DType::Q5_1, DType::IQ4_NL, DType::MXFP4, DType::Q2_K,
    DType::Q3_K, DType::Q4_K, DType::Q5_K, DType::Q6_K,   DType::IQ4_XS};
static_assert(kTypeOf.back() == DType::IQ4_XS, "one type per layout");

}  // namespace

WeightLayout panel_layout(const StoredTensor& matrix) {
  if (matrix.dtype == DType::BF16 && matrix.shape[1] % 2 != 0) return WeightLayout::F32;
  const auto type = std::ranges::find(kTypeOf, matrix.dtype);
  if (type == kTypeOf.end()) return WeightLayout::F32;
  return static_cast<WeightLayout>(type - kTypeOf.begin());
}

std::string_view layout_name(WeightLayout layout) {
  if (layout == WeightLayout::Q8ByInput) return "Q8_0 by input";
  return dtype_name(kTypeOf[static_cast<std::size_t>(layout)]);
}

Prefetch prefetch_for(std::size_t model_bytes) {
  constexpr std::size_t kMostInCaches = std::size_t{64} << 20;
  if (prefetches_itself()) return Prefetch::None;
  return model_bytes > kMostInCaches ? Prefetch::FromMemory : Prefetch::FromCaches;
}

std::size_t panel_bytes(WeightLayout layout, std::size_t inputs) {
  if (layout == WeightLayout::Q8ByInput) return inputs * (sizeof(float) + kPanelOutputs);
  const auto [elements, bytes] = dtype_block(kTypeOf[static_cast<std::size_t>(layout)]);
  return inputs / elements * bytes * kPanelOutputs;
}

void pack_panel(const StoredTensor& matrix, WeightLayout layout, std::size_t first,
                std::span<std::byte> panel) {
  const std::size_t inputs = matrix.shape[1];
  const std::size_t rows = std::min(kPanelOutputs, matrix.shape[0] - first);
  if (rows < kPanelOutputs) std::ranges::fill(panel, std::byte{});
  const StoredRows stored = rows_from(matrix, first);
  // Prefetch all of it in order, before it is read four rows at a time.
  fetch_ahead(stored.begin, rows * stored.stride);
  if (layout == WeightLayout::F32 && matrix.dtype != DType::F32) {
    return pack_as_f32(matrix, first, rows, panel);
  }
  switch (matrix.dtype) {
    case DType::F32:
      return transpose<std::uint32_t>(stored, rows, inputs, panel.data(), kAsIs);
    case DType::F16:
      return transpose<std::uint16_t>(stored, rows, inputs, panel.data(), kAsIs);
    case DType::BF16:
      return transpose<std::uint32_t>(stored, rows, inputs / 2, panel.data(), kAsIs);
    default:
      if (dtype_block(matrix.dtype).elements == kKBlock) {
        return pack_k_quant_panel(matrix, first, rows, panel);
      }
      return pack_blocks(matrix, first, rows, panel);
  }
}

}  // namespace stagecraft
