#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "operators/kernels/kernels.h"
#include "tensor/stored_tensor.h"

namespace stagecraft {

// A weight matrix [outputs, inputs] in panels of 32 outputs; the last one is filled up with zeros.
// A panel holds the weights of its 32 outputs for one input, or for a few, then for the next:
//
//   F32    [inputs][32] floats
//   F16    [inputs][32] halves
//   BF16   [inputs / 2][32][2] halves; RoundedBF16 the same
//   Q8_0   per block of 32 inputs: [8][32][4] bytes, each weight + 128,
//          then [32] scales as f16
//   Q4_0   the same with [4][32][4] bytes: byte (w, o, i) holds input 4w + i in its low half and
//          input 16 + 4w + i in its high half, each weight + 8
//   Q4_1   as Q4_0 (weights from 0), then also [32] minima as f16
//   Q5_0, Q5_1  as Q4_0 (weights + 16) and Q4_1, but after the nibbles, which hold the low four
//          bits, [32][4] fifth bits: bit w of byte (o, i) is that of input 4w + i
//   IQ4_NL, MXFP4  as Q4_0, but a nibble is a place in a table; MXFP4: [32] bytes instead of the
//          scales, the exponents of powers of 2
//   Q2_K to IQ4_XS  see k_quant_panel.h
//   Q8ByInput  per input: a float, the scale of all 32 outputs, and their 32 signed bytes
//
// The same copy serves a prompt (many rows per panel) and a single token (each panel is read once,
// in order). A view: it does not own the memory. `stride`: bytes from panel to panel.
struct PanelMatrix {
  WeightLayout layout = WeightLayout::F32;
  std::size_t outputs = 0;
  std::size_t inputs = 0;
  const std::byte* panels = nullptr;
  std::size_t stride = 0;
  Prefetch prefetch = Prefetch::FromCaches;

  std::size_t panel_count() const { return panels_of(outputs); }
  const std::byte* panel(std::size_t i) const { return panels + i * stride; }
};

// The layout in which a stored matrix is packed, always without rounding: its own format; F32 for
// Q8_K, and for BF16 with an odd number of inputs.
WeightLayout panel_layout(const StoredTensor& matrix);

// The name of the type that has this layout: "Q4_K".
std::string_view layout_name(WeightLayout layout);

// Bytes per panel: as many as the type has in a file.
std::size_t panel_bytes(WeightLayout layout, std::size_t inputs);

// How this processor best prefetches the panels of a model that takes so many bytes.
Prefetch prefetch_for(std::size_t model_bytes);

// Prefetches memory that is needed next, in the order of its addresses.
inline void fetch_ahead(const void* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const auto* line = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(line + i);
}

// Makes a tile of panel `panel` prefetch its part of the next panel. The tile has `n` rows, from
// row `first` on, of the `rows` rows that are multiplied with this panel. If n is all rows, the
// tile decides: a kernel for few rows reads each panel once, and prefetches what it reads itself
// (prefetch_ahead); a kernel that reads its panel several times prefetches the next one.
inline void fetch_on_the_way(TileArgs& args, const PanelMatrix& matrix, std::size_t panel,
                             std::size_t first, std::size_t n, std::size_t rows) {
  args.ahead = args.panel;
  args.prefetch = matrix.prefetch;
  if (rows <= n) return;
  const std::size_t bytes = panel_bytes(matrix.layout, matrix.inputs);
  args.ahead = matrix.panel(panel + 1) + bytes * first / rows;
  args.ahead_step = bytes * n / rows / args.inputs + 1;
}

// Makes a tile prefetch the same panel of the matrix that is needed next. That matrix has the same
// size, and its panels begin at `next`.
inline void fetch_next(TileArgs& args, const PanelMatrix& matrix, const std::byte* next) {
  args.to_next = next - matrix.panels;
  args.ahead = args.panel + args.to_next;
  args.ahead_step = matrix.stride / args.inputs;
}

// Writes the panel of outputs [first, first + 32) of a stored [outputs, inputs] matrix. layout: the
// one that panel_layout names, F32, or RoundedBF16 for BF16. panel: panel_bytes(...) bytes.
void pack_panel(const StoredTensor& matrix, WeightLayout layout, std::size_t first,
                std::span<std::byte> panel);

}  // namespace stagecraft
