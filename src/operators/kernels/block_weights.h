#pragma once

#include "operators/kernels/k_quant_panel.h"
#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// Unpacks the weights of a block of 32 inputs; panel_matrix.h and k_quant_panel.h show how panels
// store them. `at`: the block's first weight; `output`: the first of kLanes outputs. A word of a
// result holds the weights of four inputs of an output, a byte each.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// The four inputs from 4 * group on, and the four inputs 16 later.
struct TwoFours {
  Ints first, second;
};

STAGECRAFT_INLINE TwoFours nibbles(const std::byte* at, int group, std::size_t output) {
  const Ints both = load_ints(at + 4 * (kPanelOutputs * group + output));
  return {both & 0x0f0f0f0f, (both >> 4) & 0x0f0f0f0f};
}

STAGECRAFT_INLINE TwoFours five_bits(const std::byte* at, int group, std::size_t output) {
  const auto [low, high] = nibbles(at, group, output);
  const Ints fifth = load_ints(at + kKNibbles + 4 * output);
  return {low | ((fifth << (4 - group)) & 0x10101010), high | ((fifth >> group) & 0x10101010)};
}

// A nibble is a place in `table`.
STAGECRAFT_INLINE TwoFours looked_up(const std::uint8_t (&table)[16], const std::byte* at,
                                     int group, std::size_t output) {
  const auto [low, high] = nibbles(at, group, output);
  return {look_up(table, low), look_up(table, high)};
}

// k_quant_block.h's kNonlinear + 128, and the values of MXFP4 times 2 (see dequantize.cpp) + 12.
constexpr std::uint8_t kNonlinearBytes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                              129, 141, 153, 166, 181, 197, 217, 241};
constexpr std::uint8_t kMicroscaledBytes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                                12, 11, 10, 9,  8,  6,  4,  0};

// The four inputs from 16 * half + 4 * group on: these types have a scale per half of a block.
STAGECRAFT_INLINE Ints two_bits(const std::byte* at, int half, int group, std::size_t output) {
  return load_ints(at + kKBits * half + 4 * output) >> (2 * group) & 0x03030303;
}

STAGECRAFT_INLINE Ints three_bits(const std::byte* at, int half, int group, std::size_t output) {
  const Ints third = load_ints(at + 2 * kKBits + 4 * output);
  const int bit = 4 * half + group;
  return two_bits(at, half, group, output) |
         ((bit < 2 ? third << (2 - bit) : third >> (bit - 2)) & 0x04040404);
}

STAGECRAFT_INLINE Ints six_bits(const std::byte* at, int half, int group, std::size_t output) {
  const auto [first, second] = nibbles(at, group, output);
  const Ints high = load_ints(at + kKNibbles + kKBits * half + 4 * output);
  return (half == 0 ? first : second) |
         ((group < 3 ? high << (4 - 2 * group) : high >> 2) & 0x30303030);
}

// Four 6-bit numbers for each of kLanes outputs.
struct FourNumbers {
  Ints number[4];
  STAGECRAFT_INLINE FourNumbers read(const std::byte* at) {
    const Ints one = load_u8(at), two = load_u8(at + kPanelOutputs),
               three = load_u8(at + 2 * kPanelOutputs);
    return {{one & 63, two & 63, three & 63, one >> 6 | two >> 6 << 2 | three >> 6 << 4}};
  }
};

// 2^(b - 128) for the kLanes bytes b at `at`, as two factors: for the smallest b, it is subnormal.
STAGECRAFT_INLINE Vec load_powers(const std::byte* at) {
  const Ints b = load_u8(at), half = b >> 1;
  return as_float((half + 63) << 23) * as_float((b - half + 63) << 23);
}

// A block of 32 inputs of these types: its weights, then [32] scales, then, with kMinima, [32]
// minima.
template <WeightLayout kLayout>
struct Block {
  static constexpr bool kNibbles = kLayout != WeightLayout::Q8_0;
  static constexpr bool kFifth = kLayout == WeightLayout::Q5_0 || kLayout == WeightLayout::Q5_1;
  static constexpr bool kMinima = kLayout == WeightLayout::Q4_1 || kLayout == WeightLayout::Q5_1;
  static constexpr bool kPowers = kLayout == WeightLayout::MXFP4;  // the scales are powers of 2
  static constexpr bool kWholeBytes = !kNibbles || kLayout == WeightLayout::IQ4_NL;  // see dot_q8
  static constexpr std::size_t kWeightBytes =
      kNibbles ? kKNibbles + (kFifth ? kKBits : 0) : 32 * kPanelOutputs;
  static constexpr std::size_t kScaleBytes = kPanelOutputs * (kPowers ? 1 : 2);
  static constexpr std::size_t kBytes = kWeightBytes + kScaleBytes * (kMinima ? 2 : 1);
  // An unpacked weight is a weight + kBias.
  static constexpr std::int32_t kBias = kWholeBytes                     ? kByteBias
                                        : kPowers                       ? 12
                                        : kLayout == WeightLayout::Q4_0 ? 8
                                        : kLayout == WeightLayout::Q5_0 ? 16
                                                                        : 0;

  // Only with kNibbles.
  STAGECRAFT_INLINE TwoFours weights(const std::byte* at, int group, std::size_t output) {
    if constexpr (kFifth) return five_bits(at, group, output);
    if constexpr (kPowers) return looked_up(kMicroscaledBytes, at, group, output);
    if constexpr (kWholeBytes) return looked_up(kNonlinearBytes, at, group, output);
    return nibbles(at, group, output);
  }
  STAGECRAFT_INLINE Vec scales(const std::byte* at, std::size_t output) {
    at += kWeightBytes + output * (kPowers ? 1 : 2);
    if constexpr (kPowers) return load_powers(at);
    return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
  STAGECRAFT_INLINE Vec minima(const std::byte* at, std::size_t output) {
    at += kWeightBytes + kScaleBytes + 2 * output;
    return load_f16(reinterpret_cast<const std::uint16_t*>(at));
  }
};

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
