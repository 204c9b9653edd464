#pragma once

#include "operators/k_quant_block.h"
#include "operators/kernels/block_weights.h"

// How the panels of each type are unpacked, in blocks of kInputs inputs:
//
//   kMinima       whether there are minima
//   kBias         two() returns the bytes + kBias; kWholeBytes: for dot_q8
//   kHeadBytes    bytes before each 256 inputs: [32] d, and with kMinima [32] dmin, as f16; or 0
//   kScaleBlocks  blocks whose scales are together, before the weights of the first
//   kScaleBytes   bytes of these scales
//   kTogether     blocks whose weights are together
//   kWeightBytes  bytes of these weights
//   read_scales   calls put(i, scale, minimum) for the i-th of these blocks, for kLanes outputs:
//                 as stored, so Ints for K-quants and Vec for others. The minimum is 0 if there is
//                 none
//   two           the i-th eight weights of a block, for kLanes outputs: those of the inputs from
//                 first_of(i) on, and those kApart inputs later. `at` points to the weights that
//                 are together; `one` says which of their blocks is meant
//
// A weight is scale * byte + minimum. The scale of K-quants is d * the stored scale, the minimum
// -dmin * the stored minimum.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Q8_0 to MXFP4, see Block in block_weights.h.
template <WeightLayout kLayout>
struct Unpacking {
  using Packed = Block<kLayout>;
  static constexpr std::size_t kInputs = kQuantBlock, kApart = Packed::kNibbles ? 16 : 4;
  static constexpr bool kMinima = Packed::kMinima, kWholeBytes = Packed::kWholeBytes;
  static constexpr std::int32_t kBias = Packed::kBias;
  static constexpr std::size_t kHeadBytes = 0, kScaleBlocks = 1, kScaleBytes = 0;  // with weights
  static constexpr std::size_t kTogether = 1, kWeightBytes = Packed::kBytes;

  template <class Put>
  STAGECRAFT_INLINE void read_scales(const std::byte* at, std::size_t lane, Put put) {
    Vec minimum = {};
    if constexpr (kMinima) minimum = Packed::minima(at, lane);
    put(0, Packed::scales(at, lane), minimum);
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, int, int i, std::size_t lane) {
    if constexpr (Packed::kNibbles) return Packed::weights(at, i, lane);
    const std::byte* const fours = at + 4 * (2 * kPanelOutputs * i + lane);
    return {load_ints(fours), load_ints(fours + 4 * kPanelOutputs)};
  }
};

// Q4_K and Q5_K, see k_quant_panel.h, as all K-quants.
template <bool kFifthBit>
struct UnpackingOfMinima {
  static constexpr std::size_t kInputs = kQuantBlock, kApart = 16;
  static constexpr bool kMinima = true, kWholeBytes = false;
  static constexpr std::int32_t kBias = 0;
  static constexpr std::size_t kHeadBytes = 2 * kKHalves, kScaleBlocks = 2, kScaleBytes = kKSixes;
  static constexpr std::size_t kTogether = 1, kWeightBytes = kKNibbles + (kFifthBit ? kKBits : 0);

  template <class Put>
  STAGECRAFT_INLINE void read_scales(const std::byte* at, std::size_t lane, Put put) {
    const auto [number] = FourNumbers::read(at + lane);
    for (std::size_t i = 0; i < 2; ++i) put(i, number[2 * i], number[2 * i + 1]);
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, int, int i, std::size_t lane) {
    return kFifthBit ? five_bits(at, i, lane) : nibbles(at, i, lane);
  }
};

template <>
struct Unpacking<WeightLayout::Q4_K> : UnpackingOfMinima<false> {};
template <>
struct Unpacking<WeightLayout::Q5_K> : UnpackingOfMinima<true> {};

// Q2_K, Q3_K and Q6_K: a block is half of 32 inputs.
template <WeightLayout kLayout>
struct UnpackingOfHalves {
  static constexpr bool kTwoBits = kLayout == WeightLayout::Q2_K;
  static constexpr bool kThreeBits = kLayout == WeightLayout::Q3_K;
  static constexpr std::size_t kInputs = kQuantBlock / 2, kApart = 4;
  static constexpr bool kMinima = kTwoBits, kWholeBytes = false;
  static constexpr std::int32_t kBias = kTwoBits ? 0 : kThreeBits ? 4 : 32;
  static constexpr std::size_t kHeadBytes = kMinima ? 2 * kKHalves : kKHalves;
  static constexpr std::size_t kScaleBlocks = kThreeBits ? 4 : 2;
  static constexpr std::size_t kScaleBytes = kThreeBits ? kKSixes : 2 * kPanelOutputs;
  static constexpr std::size_t kTogether = 2;
  static constexpr std::size_t kWeightBytes = kTwoBits     ? 2 * kKBits
                                              : kThreeBits ? 3 * kKBits
                                                           : kKNibbles + 2 * kKBits;

  template <class Put>
  STAGECRAFT_INLINE void read_scales(const std::byte* at, std::size_t lane, Put put) {
    if constexpr (kThreeBits) {
      const auto [number] = FourNumbers::read(at + lane);
      for (std::size_t i = 0; i < 4; ++i) put(i, number[i] - 32, Ints{});
    } else {
      for (std::size_t i = 0; i < 2; ++i) {
        const Ints byte = load_u8(at + kPanelOutputs * i + lane);
        put(i, kMinima ? byte & 15 : byte << 24 >> 24, byte >> 4);
      }
    }
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, int one, int i, std::size_t lane) {
    return {four(at, one, 2 * i, lane), four(at, one, 2 * i + 1, lane)};
  }
  STAGECRAFT_INLINE Ints four(const std::byte* at, int half, int group, std::size_t lane) {
    if constexpr (kTwoBits) return two_bits(at, half, group, lane);
    if constexpr (kThreeBits) return three_bits(at, half, group, lane);
    return six_bits(at, half, group, lane);
  }
};

template <>
struct Unpacking<WeightLayout::Q2_K> : UnpackingOfHalves<WeightLayout::Q2_K> {};
template <>
struct Unpacking<WeightLayout::Q3_K> : UnpackingOfHalves<WeightLayout::Q3_K> {};
template <>
struct Unpacking<WeightLayout::Q6_K> : UnpackingOfHalves<WeightLayout::Q6_K> {};

template <>
struct Unpacking<WeightLayout::IQ4_XS> {
  static constexpr std::size_t kInputs = kQuantBlock, kApart = 16;
  static constexpr bool kMinima = false, kWholeBytes = true;
  static constexpr std::int32_t kBias = kByteBias;
  static constexpr std::size_t kHeadBytes = kKHalves, kScaleBlocks = 4, kScaleBytes = kKSixes;
  static constexpr std::size_t kTogether = 1, kWeightBytes = kKNibbles;

  template <class Put>
  STAGECRAFT_INLINE void read_scales(const std::byte* at, std::size_t lane, Put put) {
    const auto [number] = FourNumbers::read(at + lane);
    for (std::size_t i = 0; i < 4; ++i) put(i, number[i] - 32, Ints{});
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, int, int i, std::size_t lane) {
    return looked_up(kNonlinearBytes, at, i, lane);
  }
};

// Blocks per 256 inputs, and the bytes of the panel for 256 inputs.
template <class Unpacking>
constexpr std::size_t kBlocks = kKBlock / Unpacking::kInputs;
template <class Unpacking>
constexpr std::size_t kPanelBytes = [] {
  constexpr std::size_t n = kBlocks<Unpacking>;
  return Unpacking::kHeadBytes + n / Unpacking::kScaleBlocks * Unpacking::kScaleBytes +
         n / Unpacking::kTogether * Unpacking::kWeightBytes;
}();
// How many times two() is called per block, and the bytes that it reads on average.
template <class Unpacking>
constexpr int kTwos = Unpacking::kInputs / 8;
template <class Unpacking>
constexpr std::size_t kTwoBytes = Unpacking::kWeightBytes /
                                  (Unpacking::kTogether * kTwos<Unpacking>);
template <class Unpacking>
constexpr std::size_t first_of(int i) {
  return static_cast<std::size_t>(i) * (Unpacking::kApart == 4 ? 8 : 4);
}

// Walks over n blocks, a multiple of kScaleBlocks; `at` is behind the head. Calls on_scales(b, at)
// for the scales of the blocks from b on, then on_weights(b, at, one) for each of these blocks, see
// two(). Returns where the next part of the panel begins.
template <class Unpacking, class OnScales, class OnWeights>
STAGECRAFT_INLINE const std::byte* for_blocks(const std::byte* at, std::size_t n,
                                              OnScales on_scales, OnWeights on_weights) {
  for (std::size_t b = 0; b < n; b += Unpacking::kTogether) {
    if (b % Unpacking::kScaleBlocks == 0) {
      on_scales(b, at);
      at += Unpacking::kScaleBytes;
    }
    STAGECRAFT_UNROLL
    for (std::size_t one = 0; one < Unpacking::kTogether; ++one) {
      on_weights(b + one, at, static_cast<int>(one));
    }
    at += Unpacking::kWeightBytes;
  }
  return at;
}

// As Unpacking::read_scales, but calls put with the scales and minima themselves, as Vec. head: the
// beginning of these 256 inputs
template <class Unpacking, class Put>
STAGECRAFT_INLINE void read_scales(const std::byte* head, const std::byte* at, std::size_t lane,
                                   Put put) {
  if constexpr (Unpacking::kHeadBytes == 0) {
    Unpacking::read_scales(at, lane, put);
  } else {
    const auto* const d = reinterpret_cast<const std::uint16_t*>(head) + lane;
    const auto multiply = [&](std::size_t i, Ints scale, Ints minimum) STAGECRAFT_INLINED {
      Vec product = {};
      if constexpr (Unpacking::kMinima) {
        product = -load_f16(d + kPanelOutputs) * to_float(minimum);
      }
      put(i, load_f16(d) * to_float(scale), product);
    };
    Unpacking::read_scales(at, lane, multiply);
  }
}

// The sum of a row's bytes for the block that begins at this input of the block of 32.
template <class Unpacking>
STAGECRAFT_INLINE std::int32_t sum_of(const BlockSums& sums, std::size_t input) {
  if constexpr (Unpacking::kInputs == kQuantBlock) return sums.all;
  return input % kQuantBlock == 0 ? sums.first_half : sums.all - sums.first_half;
}

// For a row, the sums of up to 256 inputs: one per block, times the scale of the row.
template <class Unpacking>
using RowSums = float[kBlocks<Unpacking>];

// Computes them for n_rows rows, and for the n blocks that begin at input `first`. A minimum is
// multiplied with such a sum; for each panel, they are computed again.
template <class Unpacking>
STAGECRAFT_INLINE void sum_blocks(const TileArgs& t, std::size_t n_rows, std::size_t first,
                                  std::size_t n, RowSums<Unpacking>* sums) {
  for (std::size_t r = 0; r < n_rows; ++r) {
    const std::size_t row = r * t.block_stride + first / kQuantBlock;
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t input = i * Unpacking::kInputs, block = row + input / kQuantBlock;
      sums[r][i] = t.scales[block] * static_cast<float>(sum_of<Unpacking>(t.sums[block], input));
    }
  }
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
