// This gives away stage 10: it is our answer to stages/10-quantization/q8_0.cpp.
#include "operators/q8_0.h"

#include <algorithm>
#include <cmath>

#include "operators/check.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#endif

namespace stagecraft {
namespace {

constexpr std::size_t kBlock = BlockQ8_0::kSize;

float value_of(std::uint16_t half) {
  float value = 0.0f;
  f16_to_f32(std::span(&half, 1), std::span(&value, 1));
  return value;
}

#if defined(__AVX2__) && defined(__F16C__)

// Converts sixteen bytes to 16-bit numbers. madd multiplies them and adds neighbouring products, in
// 32 bits.
__m256i products(const std::int8_t* a, const std::int8_t* b) {
  const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a)));
  const __m256i y = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b)));
  return _mm256_madd_epi16(x, y);
}

// The eight partial sums of a block stay in their lanes and are scaled there. The lanes are added
// only once per row.
__m256 with_block(__m256 sums, const BlockQ8_0& a, const BlockQ8_0& b) {
  const __m256i whole = _mm256_add_epi32(products(a.q, b.q), products(a.q + 16, b.q + 16));
  const __m256 scale = _mm256_set1_ps(_cvtsh_ss(a.scale) * _cvtsh_ss(b.scale));
  return _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(whole), sums);
}

// Two vectors of sums, because an FMA waits for the previous one in the same sum.
float dot(const BlockQ8_0* a, const BlockQ8_0* b, std::size_t n) {
  __m256 even = _mm256_setzero_ps();
  __m256 odd = _mm256_setzero_ps();
  std::size_t i = 0;
  for (; i + 2 <= n; i += 2) {
    even = with_block(even, a[i], b[i]);
    odd = with_block(odd, a[i + 1], b[i + 1]);
  }
  if (i < n) even = with_block(even, a[i], b[i]);
  float lanes[8];
  _mm256_storeu_ps(lanes, _mm256_add_ps(even, odd));
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

#else

float dot(const BlockQ8_0* a, const BlockQ8_0* b, std::size_t n) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < n; ++i) {
    int whole = 0;
    for (std::size_t j = 0; j < kBlock; ++j) whole += a[i].q[j] * b[i].q[j];
    sum += value_of(a[i].scale) * value_of(b[i].scale) * static_cast<float>(whole);
  }
  return sum;
}

#endif

}  // namespace

void quantize_q8_0(std::span<const float> x, std::span<BlockQ8_0> blocks) {
  check_size("quantize_q8_0", "x", blocks.size() * kBlock, x.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto values = x.subspan(i * kBlock, kBlock);
    float largest = 0.0f;
    for (const float value : values) largest = std::max(largest, std::fabs(value));
    const float d = largest / 127.0f;
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    f32_to_f16({&d, 1}, {&blocks[i].scale, 1});
    for (std::size_t j = 0; j < kBlock; ++j) {
      blocks[i].q[j] = static_cast<std::int8_t>(std::round(values[j] * inverse));
    }
  }
}

void dequantize_q8_0(std::span<const BlockQ8_0> blocks, std::span<float> x) {
  check_size("dequantize_q8_0", "x", blocks.size() * kBlock, x.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const float scale = value_of(blocks[i].scale);
    for (std::size_t j = 0; j < kBlock; ++j) {
      x[i * kBlock + j] = scale * static_cast<float>(blocks[i].q[j]);
    }
  }
}

float dot_q8_0(std::span<const BlockQ8_0> a, std::span<const BlockQ8_0> b) {
  check_size("dot_q8_0", "b", a.size(), b.size());
  return dot(a.data(), b.data(), a.size());
}

}  // namespace stagecraft
