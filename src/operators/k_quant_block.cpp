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

// q[i] |= (the `n_bits` bits of element i, in 256 * n_bits / 8 bytes) << shift. Each run of 32
// bytes holds 256 / n_bits elements: the first 32 of them in the lowest bits of the bytes, and so
// on.
void add_bits(Bytes packed, int n_bits, int shift, KBlock& block) {
  const std::size_t in_run = 256 / static_cast<std::size_t>(n_bits);
  for (std::size_t i = 0; i < kKBlock; ++i) {
    const int byte = packed[i / in_run * 32 + i % 32];
    const int at = static_cast<int>(i % in_run / 32) * n_bits;
    const int bits = byte >> at & ((1 << n_bits) - 1);
    block.q[i] = static_cast<std::uint8_t>(block.q[i] | bits << shift);
  }
}

void read_q2_k(Bytes from, KBlock& block) {  // 16 bytes of scale and minimum, 64 of q, d, dmin
  for (std::size_t i = 0; i < 16; ++i) {
    block.scales[i] = static_cast<std::int8_t>(from[i] & 15);
    block.mins[i] = from[i] >> 4;
  }
  add_bits(from + 16, 2, 0, block);
  std::memcpy(&block.d, from + 80, 2);
  std::memcpy(&block.dmin, from + 82, 2);
}

void read_q3_k(Bytes from, KBlock& block) {  // 32 bytes of third bits, 64 of q, 12 of scales, d
  add_bits(from + 32, 2, 0, block);
  add_bits(from, 1, 2, block);
  const Bytes scales = from + 96;  // 8 bytes with the low four bits, 4 with the high two
  for (std::size_t i = 0; i < 16; ++i) {
    const int low = scales[i % 8] >> (i / 8 * 4) & 15;
    const int high = scales[8 + i % 4] >> (i / 4 * 2) & 3;
    block.scales[i] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  std::memcpy(&block.d, from + 108, 2);
}

// d, dmin, 12 bytes of scales and minima, in Q5_K 32 of fifth bits, 128 of low four bits.
void read_with_minima(Bytes from, bool has_fifth, KBlock& block) {
  std::memcpy(&block.d, from, 2);
  std::memcpy(&block.dmin, from + 2, 2);
  read_scales(from + 4, block);
  read_nibbles(from + (has_fifth ? 48 : 16), 32, block);
  if (has_fifth) add_bits(from + 16, 1, 4, block);
}

void read_q6_k(Bytes from, KBlock& block) {  // 128 bytes of low 4 bits, 64 of high 2, 16 scales, d
  read_nibbles(from, 64, block);
  add_bits(from + 128, 2, 4, block);
  std::memcpy(block.scales.data(), from + 192, 16);
  std::memcpy(&block.d, from + 208, 2);
}

void read_iq4_xs(Bytes from, KBlock& block) {  // d, high bits of scales, low bits, 128 bytes of q
  std::memcpy(&block.d, from, 2);
  const int high = from[2] | from[3] << 8;
  for (std::size_t i = 0; i < 8; ++i) {
    const int low = from[4 + i / 2] >> (i % 2 * 4) & 15;
    block.scales[i] = static_cast<std::int8_t>((low | (high >> (2 * i) & 3) << 4) - 32);
  }
  read_nibbles(from + 8, 16, block);
}

}  // namespace

KBlock read_k_block(DType dtype, const std::byte* bytes) {
  KBlock block;
  const auto* const from = reinterpret_cast<Bytes>(bytes);
  switch (dtype) {
    case DType::Q2_K:
      read_q2_k(from, block);
      break;
    case DType::Q3_K:
      read_q3_k(from, block);
      break;
    case DType::Q6_K:
      read_q6_k(from, block);
      break;
    case DType::IQ4_XS:
      read_iq4_xs(from, block);
      break;
    default:
      read_with_minima(from, dtype == DType::Q5_K, block);
  }
  return block;
}

}  // namespace stagecraft
