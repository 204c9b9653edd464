#include "operators/kernels/k_quant_panel.h"

#include <array>
#include <cstring>

#include "operators/k_quant_block.h"

namespace stagecraft {
namespace {

constexpr std::size_t kWord = 4;  // bytes of four inputs of an output

std::uint32_t four(const std::uint8_t* q) {
  std::uint32_t word;
  std::memcpy(&word, q, sizeof word);
  return word;
}
void put(std::uint32_t word, std::byte* to) { std::memcpy(to, &word, sizeof word); }

// Writes the low four bits of 32 inputs of one output; q: [32].
void put_nibbles(const std::uint8_t* q, std::byte* to) {
  for (std::size_t w = 0; w < 4; ++w, to += kPanelOutputs * kWord) {
    const std::uint32_t low = four(q + 4 * w), high = four(q + 16 + 4 * w);
    put((low & 0x0f0f0f0f) | (high & 0x0f0f0f0f) << 4, to);
  }
}

// Bit `bit` of 32 inputs of one output; q: [32].
std::uint32_t bits_of(const std::uint8_t* q, int bit) {
  std::uint32_t bits = 0;
  for (std::size_t w = 0; w < 8; ++w) bits |= (four(q + 4 * w) >> bit & 0x01010101) << w;
  return bits;
}

// Writes the two bits from `bit` on of 32 inputs of one output.
void put_two_bits(const std::uint8_t* q, int bit, std::byte* to) {
  for (std::size_t half = 0; half < 2; ++half, to += kKBits) {
    std::uint32_t bits = 0;
    for (std::size_t w = 0; w < 4; ++w) {
      bits |= (four(q + 16 * half + 4 * w) >> bit & 0x03030303) << (2 * w);
    }
    put(bits, to);
  }
}

// Writes four 6-bit numbers of one output.
void put_sixes(const std::array<int, 4>& numbers, std::byte* to) {
  for (std::size_t i = 0; i < 3; ++i) {
    to[i * kPanelOutputs] = static_cast<std::byte>(numbers[i] | (numbers[3] >> (2 * i) & 3) << 6);
  }
}

// Writes 256 inputs of one output. `to`: where these 256 inputs begin in the panel.
void put_q2_k(const KBlock& k, std::size_t output, std::byte* to) {
  std::memcpy(to + 2 * output, &k.d, 2);
  std::memcpy(to + kKHalves + 2 * output, &k.dmin, 2);
  to += 2 * kKHalves;
  for (std::size_t b = 0; b < 8; ++b) {
    for (std::size_t i = 2 * b; i < 2 * b + 2; ++i, to += kPanelOutputs) {
      to[output] = static_cast<std::byte>(k.scales[i] | k.mins[i] << 4);
    }
    put_two_bits(&k.q[kQuantBlock * b], 0, to + kWord * output);
    to += 2 * kKBits;
  }
}

void put_q3_k(const KBlock& k, std::size_t output, std::byte* to) {
  std::memcpy(to + 2 * output, &k.d, 2);
  to += kKHalves;
  for (std::size_t b = 0; b < 8; ++b) {
    if (b % 2 == 0) {
      const auto* const scales = &k.scales[2 * b];
      put_sixes({scales[0] + 32, scales[1] + 32, scales[2] + 32, scales[3] + 32}, to + output);
      to += kKSixes;
    }
    const std::uint8_t* q = &k.q[kQuantBlock * b];
    put_two_bits(q, 0, to + kWord * output);
    to += 2 * kKBits;
    put(bits_of(q, 2), to + kWord * output);
    to += kKBits;
  }
}

void put_with_minima(const KBlock& k, bool has_fifth, std::size_t output, std::byte* to) {
  std::memcpy(to + 2 * output, &k.d, 2);
  std::memcpy(to + kKHalves + 2 * output, &k.dmin, 2);
  to += 2 * kKHalves;
  for (std::size_t b = 0; b < 8; b += 2) {
    put_sixes({k.scales[b], k.mins[b], k.scales[b + 1], k.mins[b + 1]}, to + output);
    to += kKSixes;
    for (const std::size_t block : {b, b + 1}) {
      const std::uint8_t* q = &k.q[kQuantBlock * block];
      put_nibbles(q, to + kWord * output);
      to += kKNibbles;
      if (!has_fifth) continue;
      put(bits_of(q, 4), to + kWord * output);
      to += kKBits;
    }
  }
}

void put_q6_k(const KBlock& k, std::size_t output, std::byte* to) {
  std::memcpy(to + 2 * output, &k.d, 2);
  to += kKHalves;
  for (std::size_t b = 0; b < 8; ++b) {
    for (const std::size_t half : {0u, 1u}) {
      to[kPanelOutputs * half + output] = static_cast<std::byte>(k.scales[2 * b + half]);
    }
    to += 2 * kPanelOutputs;
    const std::uint8_t* q = &k.q[kQuantBlock * b];
    put_nibbles(q, to + kWord * output);
    to += kKNibbles;
    put_two_bits(q, 4, to + kWord * output);
    to += 2 * kKBits;
  }
}

void put_iq4_xs(const KBlock& k, std::size_t output, std::byte* to) {
  std::memcpy(to + 2 * output, &k.d, 2);
  to += kKHalves;
  for (std::size_t b = 0; b < 8; ++b) {
    if (b % 4 == 0) {
      put_sixes(
          {k.scales[b] + 32, k.scales[b + 1] + 32, k.scales[b + 2] + 32, k.scales[b + 3] + 32},
          to + output);
      to += kKSixes;
    }
    put_nibbles(&k.q[kQuantBlock * b], to + kWord * output);
    to += kKNibbles;
  }
}

}  // namespace

void pack_k_quant_panel(const StoredTensor& matrix, std::size_t first, std::size_t rows,
                        std::span<std::byte> panel) {
  const std::size_t row_bytes = matrix.bytes.size() / matrix.shape[0];
  const std::size_t block_bytes = dtype_block(matrix.dtype).bytes;
  std::byte* to = panel.data();
  for (std::size_t at = 0; at < row_bytes; at += block_bytes, to += kPanelOutputs * block_bytes) {
    for (std::size_t output = 0; output < rows; ++output) {
      const KBlock block =
          read_k_block(matrix.dtype, &matrix.bytes[(first + output) * row_bytes + at]);
      switch (matrix.dtype) {
        case DType::Q2_K:
          put_q2_k(block, output, to);
          break;
        case DType::Q3_K:
          put_q3_k(block, output, to);
          break;
        case DType::Q6_K:
          put_q6_k(block, output, to);
          break;
        case DType::IQ4_XS:
          put_iq4_xs(block, output, to);
          break;
        default:
          put_with_minima(block, matrix.dtype == DType::Q5_K, output, to);
      }
    }
  }
}

}  // namespace stagecraft
