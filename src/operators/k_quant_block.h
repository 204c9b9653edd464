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

// An unpacked block of Q4_K, Q5_K, Q6_K or IQ4_XS: each number has an array element of its own. A
// file packs a block to 4.25 to 6.6 bits per element.
//
//   Q4_K, Q5_K   element i = d * scale[i / 32] * q[i] - dmin * min[i / 32]     q from 0
//   Q6_K         element i = d * scale[i / 16] * (q[i] - 32)
//   IQ4_XS       element i = d * scale[i / 32] * kNonlinear[q[i]]
struct KBlock {
  std::uint16_t d = 0, dmin = 0;            // f16; dmin: 0 in Q6_K and IQ4_XS
  std::array<std::int8_t, 16> scales = {};  // Q4_K, Q5_K: 8, 0 to 63; IQ4_XS: 8, -32 to 31
  std::array<std::uint8_t, 8> mins = {};    // 0 to 63; only in Q4_K and Q5_K
  std::array<std::uint8_t, kKBlock> q = {};
};

// Unpacks a block. dtype: one of these four (not checked); bytes: the block as stored,
// dtype_block(dtype).bytes bytes.
KBlock read_k_block(DType dtype, const std::byte* bytes);

}  // namespace stagecraft
