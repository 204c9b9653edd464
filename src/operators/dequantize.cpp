#include "operators/dequantize.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "operators/check.h"
#include "operators/half_to_float.h"
#include "operators/k_quant_block.h"

namespace stagecraft {
namespace {

using Bytes = const std::uint8_t*;
using Index = std::uint32_t;  // index of an element in its block

float half(std::uint16_t bits) {
  float value = 0.0f;
  f16_to_f32({&bits, 1}, {&value, 1});
  return value;
}

// Reads an f16 that need not be aligned.
float half_at(Bytes bytes) { return half(static_cast<std::uint16_t>(bytes[0] | bytes[1] << 8)); }

// The two 4-bit numbers of a byte. In a block of 32, the low ones are elements 0 to 15, the high
// ones 16 to 31.
int low(std::uint8_t byte) { return byte & 0xf; }
int high(std::uint8_t byte) { return byte >> 4; }
int bit(Bytes bits, Index i) { return bits[i / 8] >> (i % 8) & 1; }
float f32(int i) { return static_cast<float>(i); }

// ---- blocks of 32 -------------------------------------------------------------------------------

void q4_0(Bytes block, float* out) {  // d, 16 bytes
  const float d = half_at(block);
  for (Index i = 0; i < 16; ++i) {
    out[i] = f32(low(block[2 + i]) - 8) * d;
    out[16 + i] = f32(high(block[2 + i]) - 8) * d;
  }
}

void q4_1(Bytes block, float* out) {  // d, m, 16 bytes
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (Index i = 0; i < 16; ++i) {
    out[i] = f32(low(block[4 + i])) * d + m;
    out[16 + i] = f32(high(block[4 + i])) * d + m;
  }
}

void q5_0(Bytes block, float* out) {  // d, the fifth bits of all 32, 16 bytes
  const float d = half_at(block);
  const Bytes fifth = block + 2;
  for (Index i = 0; i < 16; ++i) {
    out[i] = f32((low(block[6 + i]) | bit(fifth, i) << 4) - 16) * d;
    out[16 + i] = f32((high(block[6 + i]) | bit(fifth, 16 + i) << 4) - 16) * d;
  }
}

void q5_1(Bytes block, float* out) {  // d, m, the fifth bits of all 32, 16 bytes
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const Bytes fifth = block + 4;
  for (Index i = 0; i < 16; ++i) {
    out[i] = f32(low(block[8 + i]) | bit(fifth, i) << 4) * d + m;
    out[16 + i] = f32(high(block[8 + i]) | bit(fifth, 16 + i) << 4) * d + m;
  }
}

void q8_0(Bytes block, float* out) {  // d, 32 signed bytes
  const float d = half_at(block);
  for (Index i = 0; i < 32; ++i) out[i] = f32(static_cast<std::int8_t>(block[2 + i])) * d;
}

void iq4_nl(Bytes block, float* out) {  // d, 16 bytes
  const float d = half_at(block);
  for (Index i = 0; i < 16; ++i) {
    out[i] = d * f32(kNonlinear[low(block[2 + i])]);
    out[16 + i] = d * f32(kNonlinear[high(block[2 + i])]);
  }
}

// The values of a 4-bit float with 1 sign, 2 exponent and 1 mantissa bits (OCP Microscaling Formats
// 1.0, 5.3.3), times 2, so that all are integers.
constexpr std::int8_t kMicroscaled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

void mxfp4(Bytes block, float* out) {  // the exponent of d, 16 bytes
  // Half of 2^(exponent - 127), because the values are twice as large.
  const float d = std::ldexp(1.0f, block[0] - 128);
  for (Index i = 0; i < 16; ++i) {
    out[i] = d * f32(kMicroscaled[low(block[1 + i])]);
    out[16 + i] = d * f32(kMicroscaled[high(block[1 + i])]);
  }
}

// ---- blocks of 256 ------------------------------------------------------------------------------

template <DType kType>
void k_block(Bytes bytes, float* out) {
  constexpr bool kLarge = kType == DType::Q4_K || kType == DType::Q5_K || kType == DType::IQ4_XS;
  constexpr Index kGroup = kLarge ? 32 : 16;  // elements that share a scale
  const KBlock block = read_k_block(kType, reinterpret_cast<const std::byte*>(bytes));
  const float d = half(block.d);
  const float dmin = half(block.dmin);
  for (Index group = 0; group < kKBlock / kGroup; ++group) {
    const float dl = d * f32(block.scales[group]);
    const float ml = dmin * f32(block.mins[group]);
    for (Index i = kGroup * group; i < kGroup * group + kGroup; ++i) {
      if constexpr (kType == DType::IQ4_XS) {
        out[i] = dl * f32(kNonlinear[block.q[i]]);
      } else if constexpr (kType == DType::Q3_K) {
        out[i] = dl * f32(block.q[i] - 4);
      } else if constexpr (kType == DType::Q6_K) {
        out[i] = dl * f32(block.q[i] - 32);
      } else {
        out[i] = dl * f32(block.q[i]) - ml;
      }
    }
  }
}

void q8_k(Bytes block, float* out) {  // d as f32, 256 signed bytes, 16 sums (not used)
  float d = 0.0f;
  std::memcpy(&d, block, sizeof d);
  for (Index i = 0; i < 256; ++i) out[i] = d * f32(static_cast<std::int8_t>(block[4 + i]));
}

using OneBlock = void (*)(Bytes block, float* out);

OneBlock function_for(DType dtype) {
  switch (dtype) {
    case DType::Q4_0:
      return q4_0;
    case DType::Q4_1:
      return q4_1;
    case DType::Q5_0:
      return q5_0;
    case DType::Q5_1:
      return q5_1;
    case DType::Q8_0:
      return q8_0;
    case DType::Q2_K:
      return k_block<DType::Q2_K>;
    case DType::Q3_K:
      return k_block<DType::Q3_K>;
    case DType::Q4_K:
      return k_block<DType::Q4_K>;
    case DType::Q5_K:
      return k_block<DType::Q5_K>;
    case DType::Q6_K:
      return k_block<DType::Q6_K>;
    case DType::Q8_K:
      return q8_k;
    case DType::IQ4_NL:
      return iq4_nl;
    case DType::IQ4_XS:
      return k_block<DType::IQ4_XS>;
    case DType::MXFP4:
      return mxfp4;
    default:
      throw Error("dequantize: expected a quantised type, found {}", dtype_name(dtype));
  }
}

}  // namespace

void dequantize(DType dtype, std::span<const std::byte> blocks, std::span<float> out) {
  const OneBlock one_block = function_for(dtype);
  const DTypeBlock size = dtype_block(dtype);
  check_size("dequantize", "blocks", blocks.size() / size.bytes * size.bytes, blocks.size());
  check_size("dequantize", "out", blocks.size() / size.bytes * size.elements, out.size());
  Bytes block = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t at = 0; at < out.size(); at += size.elements, block += size.bytes) {
    one_block(block, out.data() + at);
  }
}

bool fits_q8_0(DType dtype) { return dtype == DType::Q5_0 || dtype == DType::IQ4_NL; }

// With d = 1, a block dequantises to q.
void blocks_as_q8_0(DType dtype, std::span<const std::byte> blocks, std::span<std::byte> out) {
  if (!fits_q8_0(dtype)) {
    throw Error("blocks_as_q8_0: expected Q5_0 or IQ4_NL, found {}", dtype_name(dtype));
  }
  constexpr std::size_t kElements = 32;
  constexpr std::byte kOne[] = {std::byte{0x00}, std::byte{0x3c}};  // 1 as f16
  const OneBlock one_block = function_for(dtype);
  const std::size_t from_bytes = dtype_block(dtype).bytes;
  const std::size_t to_bytes = dtype_block(DType::Q8_0).bytes;
  const std::size_t n = blocks.size() / from_bytes;
  check_size("blocks_as_q8_0", "blocks", n * from_bytes, blocks.size());
  check_size("blocks_as_q8_0", "out", n * to_bytes, out.size());
  std::array<std::byte, 32> unscaled;  // the largest of these blocks has 22 bytes
  std::array<float, kElements> q;
  for (std::size_t b = 0; b < n; ++b) {
    std::byte* to = out.data() + b * to_bytes;
    std::memcpy(to, &blocks[b * from_bytes], sizeof kOne);
    std::memcpy(unscaled.data(), &blocks[b * from_bytes], from_bytes);
    std::memcpy(unscaled.data(), kOne, sizeof kOne);
    one_block(reinterpret_cast<Bytes>(unscaled.data()), q.data());
    for (std::size_t i = 0; i < kElements; ++i) {
      to[sizeof kOne + i] = static_cast<std::byte>(static_cast<std::int8_t>(q[i]));
    }
  }
}

}  // namespace stagecraft
