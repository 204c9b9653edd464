#pragma once

#include <cstddef>
#include <span>

#include "operators/kernels/kernels.h"
#include "tensor/stored_tensor.h"

namespace stagecraft {

// Panels of K-quants: the numbers of operators/k_quant_block.h for 32 outputs, in as many bytes as
// in the file. Per 256 inputs:
//
//   Q2_K
//     [32] d, then [32] dmin, as f16
//     eight blocks of 32 inputs:
//       [2][32]    scale in the low four bits, minimum in the high ones: of the first and of the
//                  last 16 inputs
//       [2][32][4] two bits: bits 2w and 2w + 1 of byte (h, o, i) are those of input
//                  16h + 4w + i
//   Q3_K
//     [32] d as f16
//     four times two blocks of 32 inputs:
//       [3][32] bytes with their four scales + 32, in 6 bits as below
//       twice   [2][32][4] two bits, as above
//               [32][4]    third bits: bit w of byte (o, i) is that of input 4w + i
//   Q4_K, Q5_K
//     [32] d, then [32] dmin, as f16
//     four times two blocks of 32 inputs:
//       [3][32] bytes with four numbers of 6 bits. Low bits: the scale and the minimum of the first
//               block, and the scale of the second. High bits: the minimum of the second, its
//               lowest two bits in the first byte
//       twice   [4][32][4] nibbles, as in Q4_0: byte (w, o, i) holds input 4w + i in its low half
//                          and input 16 + 4w + i in its high half
//               Q5_K: [32][4] fifth bits, as the third bits above
//   Q6_K
//     [32] d as f16
//     eight blocks of 32 inputs:
//       [2][32]    scales: signed bytes, of the first and of the last 16 inputs
//       [4][32][4] nibbles, as above
//       [2][32][4] two high bits, as the two bits above
//   IQ4_XS
//     [32] d as f16
//     twice four blocks of 32 inputs:
//       [3][32] bytes with their four scales + 32, in 6 bits as above
//       four times [4][32][4] nibbles, as above
constexpr std::size_t kKHalves = 2 * kPanelOutputs;    // bytes of [32] f16
constexpr std::size_t kKSixes = 3 * kPanelOutputs;     // bytes of four 6-bit numbers per output
constexpr std::size_t kKNibbles = 16 * kPanelOutputs;  // bytes of the low four bits of a block
constexpr std::size_t kKBits = 4 * kPanelOutputs;      // bytes of one bit per input of a block

// Writes the panel of outputs [first, first + rows) of a stored matrix of one of these types.
// `panel` must have panel_bytes(...) bytes; those of missing outputs are not written.
void pack_k_quant_panel(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                        std::span<std::byte> panel);

}  // namespace stagecraft
