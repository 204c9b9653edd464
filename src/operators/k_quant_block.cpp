#include "operators/k_quant_block.h"

#include <cstring>

namespace stagecraft {
namespace {

using Bytes = const std::uint8_t*;

// Unpacks eight scales and eight minima of 6 bits each from 12 bytes. The first eight bytes hold
// the first four scales and the first four minima. Of the last four scales and minima, the last
// four bytes hold the low bits; the high bits are above the 6 bits of the first four.
void read_scales(Bytes packed, KBlock& block) {
  for (std::size_t i = 0; i < 4; ++i) {
    const int scale = packed[i], min = packed[4 + i], low = packed[8 + i];
    block.scales[i] = static_cast<std::int8_t>(scale & 63);
    block.mins[i] = static_cast<std::uint8_t>(min & 63);
    block.scales[4 + i] = static_cast<std::int8_t>((low & 15) | scale >> 6 << 4);
    block.mins[4 + i] = static_cast<std::uint8_t>(low >> 4 | min >> 6 << 4);
  }
}

// Each run of `run` bytes holds 2 * run elements: the first half of them in the low four bits, the
// second half in the high four bits.
void read_nibbles(Bytes packed, std::size_t run, KBlock& block) {
  for (std::size_t begin = 0; begin < kKBlock; begin += 2 * run, packed += run) {
    for (std::size_t i = 0; i < run; ++i) {
      block.q[begin + i] = packed[i] & 15;
      block.q[begin + run + i] = packed[i] >> 4;
    }
  }
}

}  // namespace

KBlock read_k_block(DType dtype, const std::byte* bytes) {
  KBlock block;
  const auto* const from = reinterpret_cast<Bytes>(bytes);
  if (dtype == DType::IQ4_XS) {  // d, 2 bytes of high bits of scales, 4 of low ones, 128 of q
    std::memcpy(&block.d, from, 2);
    const int high = from[2] | from[3] << 8;
    for (std::size_t i = 0; i < 8; ++i) {
      const int low = from[4 + i / 2] >> (i % 2 * 4) & 15;
      block.scales[i] = static_cast<std::int8_t>((low | (high >> (2 * i) & 3) << 4) - 32);
    }
    read_nibbles(from + 8, 16, block);
    return block;
  }
  if (dtype == DType::Q6_K) {  // 128 bytes of low 4 bits, 64 of high 2, 16 scales, d
    read_nibbles(from, 64, block);
    for (std::size_t i = 0; i < kKBlock; ++i) {
      const int high = from[128 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
      block.q[i] = static_cast<std::uint8_t>(block.q[i] | high << 4);
    }
    std::memcpy(block.scales.data(), from + 192, 16);
    std::memcpy(&block.d, from + 208, 2);
    return block;
  }
  // d, dmin, 12 bytes of scales and minima, in Q5_K 32 of fifth bits, 128 of low 4 bits.
  std::memcpy(&block.d, from, 2);
  std::memcpy(&block.dmin, from + 2, 2);
  read_scales(from + 4, block);
  const bool has_fifth = dtype == DType::Q5_K;
  read_nibbles(from + (has_fifth ? 48 : 16), 32, block);
  for (std::size_t i = 0; has_fifth && i < kKBlock; ++i) {
    const int fifth = from[16 + i % 32] >> (i / 32) & 1;
    block.q[i] = static_cast<std::uint8_t>(block.q[i] | fifth << 4);
  }
  return block;
}

}  // namespace stagecraft
