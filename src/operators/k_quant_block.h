#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace stagecraft {

constexpr std::size_t kKBlock = 256;  // elements

// The table of IQ4_NL and IQ4_XS: 16 values, closer together near 0.
inline constexpr std::array<std::int8_t, 16> kNonlinear = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// An unpacked block of Q2_K to Q6_K or IQ4_XS: each number has an array element of its own. A file
// packs a block to 2.6 to 6.6 bits per element.
//
//   Q2_K         element i = d * scale[i / 16] * q[i] - dmin * min[i / 16]     q from 0
//   Q3_K         element i = d * scale[i / 16] * (q[i] - 4)
//   Q4_K, Q5_K   element i = d * scale[i / 32] * q[i] - dmin * min[i / 32]     q from 0
//   Q6_K         element i = d * scale[i / 16] * (q[i] - 32)
//   IQ4_XS       element i = d * scale[i / 32] * kNonlinear[q[i]]
struct KBlock {
  std::uint16_t d = 0, dmin = 0;  // f16; dmin: 0 in types without minima
  // Q2_K: 0 to 15; Q4_K, Q5_K: 0 to 63; Q3_K, IQ4_XS: -32 to 31; Q6_K: any
  std::array<std::int8_t, 16> scales = {};
  std::array<std::uint8_t, 16> mins = {};  // Q2_K: 0 to 15; Q4_K, Q5_K: 0 to 63
  std::array<std::uint8_t, kKBlock> q = {};
};

// Unpacks a block. dtype: one of these six (not checked); bytes: the block as stored,
// dtype_block(dtype).bytes bytes.
KBlock read_k_block(DType dtype, const std::byte* bytes);

}  // namespace stagecraft
