#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "operators/kernels/shuffled.h"

// The thin vector type that all kernels use. This file is compiled once per instruction set, with
// the compiler flags of that set; STAGECRAFT_ISA is its name. Everything is in a namespace of that
// name and is inlined, so that the linker can never use code for one instruction set in place of
// code for another.
//
// A Vec has kLanes floats, an Ints has kLanes 32-bit integers. The compiler provides + - * for
// both.

#define STAGECRAFT_INLINE [[gnu::always_inline]] static inline
#define STAGECRAFT_INLINED __attribute__((always_inline))  // for a lambda
#if defined(__clang__)
#define STAGECRAFT_UNROLL _Pragma("unroll")
#define STAGECRAFT_UNROLL_BY_2 _Pragma("unroll 2")
#else
#define STAGECRAFT_UNROLL _Pragma("GCC unroll 16")
#define STAGECRAFT_UNROLL_BY_2 _Pragma("GCC unroll 2")
#endif

namespace stagecraft::STAGECRAFT_ISA {
namespace {

#if defined(__AVX512F__)
constexpr std::size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr std::size_t kLanes = 8;
#else
constexpr std::size_t kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * kLanes)));

// Loads from memory of any alignment and any type.
template <class V>
STAGECRAFT_INLINE V load_as(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
STAGECRAFT_INLINE Vec load(const float* from) { return load_as<Vec>(from); }
STAGECRAFT_INLINE Ints load_ints(const void* from) { return load_as<Ints>(from); }
STAGECRAFT_INLINE void store(float* to, Vec v) { std::memcpy(to, &v, sizeof v); }
STAGECRAFT_INLINE void store(std::int32_t* to, Ints v) { std::memcpy(to, &v, sizeof v); }

// Prefetches the n_bytes at `at` into L1 or L2, numbered as in __builtin_prefetch.
enum Cache : int { kIntoL2 = 1, kIntoL1 = 3 };
template <std::size_t n_bytes, Cache kCache>
STAGECRAFT_INLINE void prefetch(const std::byte* at) {
  STAGECRAFT_UNROLL
  for (std::size_t i = 0; i < n_bytes; i += 64) __builtin_prefetch(at + i, 0, kCache);
}

// For a loop that reads memory from the first byte to the last and now reads the n_bytes at `at`.
// Prefetches the n_bytes that lie 8,192 bytes further on into L2, and those 4,096 bytes further on
// into L1. L1 can wait for fewer cache lines than L2: with a prefetch into L1 alone, 1B models
// generate 3 to 18% slower on a Xeon. If the data is in a cache already, the two prefetches cost
// 2%. Measured with AVX-512 and AVX-VNNI on a Xeon; not measured on processors with AVX2 only.
#if defined(__AVX512F__) || defined(__AVXVNNI__)
constexpr bool kPrefetchesTwoLevels = true;
#else
constexpr bool kPrefetchesTwoLevels = false;
#endif
template <std::size_t n_bytes>
STAGECRAFT_INLINE void prefetch_from_memory(const std::byte* at) {
  prefetch<n_bytes, kIntoL1>(at + 4096);
  prefetch<n_bytes, kIntoL2>(at + 8192);
}

// See Kernels::two_panels. A Zen 3 then generates 1.06 to 1.24 times as fast with one thread, and
// 0.98 to 1.25 times with two. A Zen 4 with AVX-512 generates more slowly: 0.81 to 0.95 times with
// one thread, 0.90 to 1.03 with two. Not measured with AVX-VNNI.
#if defined(__AVX2__) && !defined(__AVXVNNI__) && !defined(__AVX512F__)
constexpr bool kTwoPanels = true;
#else
constexpr bool kTwoPanels = false;
#endif

STAGECRAFT_INLINE Vec broadcast(float x) { return x - Vec{}; }
STAGECRAFT_INLINE Ints broadcast(std::int32_t x) { return x - Ints{}; }

STAGECRAFT_INLINE Vec to_float(Ints v) { return __builtin_convertvector(v, Vec); }
STAGECRAFT_INLINE Vec as_float(Ints v) { return reinterpret_cast<Vec>(v); }
STAGECRAFT_INLINE Ints as_ints(Vec v) { return reinterpret_cast<Ints>(v); }

// If a or b is NaN, the result is b. (For AVX-512, GCC 12 compiles a comparison to two
// instructions.)
#if defined(__AVX512F__)
STAGECRAFT_INLINE Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
STAGECRAFT_INLINE Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }
#else
STAGECRAFT_INLINE Vec max(Vec a, Vec b) { return a > b ? a : b; }
STAGECRAFT_INLINE Vec min(Vec a, Vec b) { return a < b ? a : b; }
#endif
STAGECRAFT_INLINE Ints max(Ints a, Ints b) { return a > b ? a : b; }
STAGECRAFT_INLINE Vec abs(Vec v) { return as_float(as_ints(v) & 0x7fffffff); }

// a * b + c; rounded once if the processor has such an instruction.
STAGECRAFT_INLINE Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}

// The nearest whole number, ties to even; |v| < 2^22.
STAGECRAFT_INLINE Vec nearest(Vec v) {
#if defined(__AVX512F__)
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__aarch64__)
  return vrndnq_f32(v);
#else
  const Vec shift = broadcast(0x1.8p23f);  // pushes the fraction out of the mantissa
  return (v + shift) - shift;
#endif
}
STAGECRAFT_INLINE Ints to_ints(Vec v) { return __builtin_convertvector(v, Ints); }
STAGECRAFT_INLINE Ints to_nearest_ints(Vec v) {
#if defined(__AVX512F__)
  return (Ints)_mm512_cvtps_epi32(v);
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtps_epi32(v);
#elif defined(__aarch64__)
  return (Ints)vcvtnq_s32_f32(v);
#else
  return to_ints(nearest(v));
#endif
}

// Sums and maxima over the lanes. The upper half is joined with the lower half until one lane is
// left: the same order for every row.
#if defined(__AVX512F__)
STAGECRAFT_INLINE float sum(Vec v) { return _mm512_reduce_add_ps(v); }
STAGECRAFT_INLINE float max(Vec v) { return _mm512_reduce_max_ps(v); }
STAGECRAFT_INLINE std::int32_t max(Ints v) { return _mm512_reduce_max_epi32((__m512i)v); }
#else
template <class V, class Join>
STAGECRAFT_INLINE auto fold(V v, Join join) {
#if defined(__AVX2__)
  const auto four = join(shuffled<0, 1, 2, 3>(v, v), shuffled<4, 5, 6, 7>(v, v));
#else
  const auto four = v;
#endif
  const auto two = join(four, shuffled<2, 3, 2, 3>(four, four));
  return join(two, shuffled<1, 1, 1, 1>(two, two))[0];
}
STAGECRAFT_INLINE float sum(Vec v) {
  return fold(v, [](auto a, auto b) STAGECRAFT_INLINED { return a + b; });
}
template <class V>
STAGECRAFT_INLINE auto max_lane(V v) {
  return fold(v, [](auto a, auto b) STAGECRAFT_INLINED { return a > b ? a : b; });
}
STAGECRAFT_INLINE float max(Vec v) { return max_lane(v); }
STAGECRAFT_INLINE std::int32_t max(Ints v) { return max_lane(v); }
#endif

// Converts kLanes f16 to floats.
STAGECRAFT_INLINE Vec load_f16(const std::uint16_t* from) {
#if defined(__AVX512F__)
  return _mm512_cvtph_ps(load_as<__m256i>(from));
#elif defined(__AVX2__)
  return _mm256_cvtph_ps(load_as<__m128i>(from));
#elif defined(__aarch64__)
  return vcvt_f32_f16(load_as<float16x4_t>(from));
#else
  // Moves exponent and mantissa to their places in an f32. Multiplying by 2^112 corrects the bias
  // of the exponent, and makes a subnormal f16 a normal f32. Infinity and NaN become 2^16 and more,
  // which `special` corrects.
  Ints bits;
  for (std::size_t i = 0; i < kLanes; ++i) bits[i] = from[i];
  const Ints magnitude = bits & 0x7fff;
  const Vec scaled = as_float(magnitude << 13) * broadcast(0x1p112f);
  const Ints special = (magnitude >= 0x7c00) & 0x7f800000;
  return as_float((as_ints(scaled) | special) | ((bits & 0x8000) << 16));
#endif
}

// Rounds kLanes floats to f16, ties to even.
STAGECRAFT_INLINE Halves rounded_to_f16(Vec v) {
#if defined(__AVX512F__)
  return (Halves)_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__AVX2__)
  return (Halves)_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__aarch64__)
  return (Halves)vcvt_f16_f32(v);
#else
  // As in operators/float_to_half.cpp, which explains the constants.
  const Words bits = (Words)as_ints(v), magnitude = bits & 0x7fffffffu;
  const Words small = (Words)as_ints(as_float((Ints)magnitude) + broadcast(0.5f)) - 0x3f000000u;
  const Words normal = ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112u << 10);
  Words half = magnitude < 0x38800000u ? small : normal;
  half = magnitude >= 0x477ff000u ? Words{} + 0x7c00u : half;
  half = magnitude > 0x7f800000u ? Words{} + 0x7e00u : half;
  return __builtin_convertvector(half | (bits >> 16 & 0x8000u), Halves);
#endif
}

// Converts kLanes signed bytes to floats.
STAGECRAFT_INLINE Vec load_i8(const std::byte* from) {
#if defined(__AVX512F__)
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(load_as<__m128i>(from)));
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(load_as<long long>(from))));
#elif defined(__aarch64__)
  const int8x8_t bytes = vreinterpret_s8_s32(vdup_n_s32(load_as<std::int32_t>(from)));
  return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(bytes))));
#else
  Ints wide;
  for (std::size_t i = 0; i < kLanes; ++i) wide[i] = static_cast<std::int8_t>(from[i]);
  return to_float(wide);
#endif
}

// Converts kLanes unsigned bytes to integers.
STAGECRAFT_INLINE Ints load_u8(const std::byte* from) {
#if defined(__AVX512F__)
  return (Ints)_mm512_cvtepu8_epi32(load_as<__m128i>(from));
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(load_as<long long>(from)));
#elif defined(__aarch64__)
  const uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(load_as<std::uint32_t>(from)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(vmovl_u8(bytes))));
#else
  Ints wide;
  for (std::size_t i = 0; i < kLanes; ++i) wide[i] = static_cast<std::uint8_t>(from[i]);
  return wide;
#endif
}

// Replaces each byte b of `at` (0 to 15) by table[b].
STAGECRAFT_INLINE Ints look_up(const std::uint8_t (&table)[16], Ints at) {
#if defined(__AVX512BW__)
  return (Ints)_mm512_shuffle_epi8(_mm512_broadcast_i32x4(load_as<__m128i>(table)), (__m512i)at);
#elif defined(__AVX2__)
  return (Ints)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_as<__m128i>(table)),
                                   (__m256i)at);
#elif defined(__aarch64__)
  return vreinterpretq_s32_u8(vqtbl1q_u8(load_as<uint8x16_t>(table), vreinterpretq_u8_s32(at)));
#else
  typedef std::uint8_t Bytes __attribute__((vector_size(4 * kLanes)));
  Bytes bytes = (Bytes)at;
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = table[bytes[i]];
  return (Ints)bytes;
#endif
}

// If the instruction for dot products takes unsigned bytes w + 128, the sum must start at
// -128 * sum(a). Otherwise dot_q8 first makes the bytes signed again, and the sum starts at 0.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_MATMUL_INT8)
constexpr std::int32_t kByteBias = 128;
#else
constexpr std::int32_t kByteBias = 0;
#endif

// Per lane: sum += the two 16-bit sums of products in `pairs`.
#if defined(__AVX512BW__)
STAGECRAFT_INLINE Ints add_widened(Ints sum, __m512i pairs) {
  return sum + (Ints)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
#elif defined(__AVX2__)
STAGECRAFT_INLINE Ints add_widened(Ints sum, __m256i pairs) {
  sum += (Ints)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  // Otherwise GCC 12 adds the products of a block as a tree and keeps all of them in memory until
  // then. The empty asm hides the value of the sum, which prevents that.
  asm("" : "+x"(sum));
  return sum;
}
#endif

#if !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
// Per lane: sum += the four products of unsigned bytes u <= 128 with signed bytes s. Exact.
STAGECRAFT_INLINE Ints dot_bytes(Ints sum, Ints u, Ints s) {
#if defined(__AVX512BW__)
  return add_widened(sum, _mm512_maddubs_epi16((__m512i)u, (__m512i)s));  // at most 2 * 128 * 127
#elif defined(__AVX2__)
  return add_widened(sum, _mm256_maddubs_epi16((__m256i)u, (__m256i)s));
#else
  for (int byte = 0; byte < 4; ++byte) {
    const Ints wide_u = (Ints)((Words)u >> (8 * byte)) & 0xff;
    const Ints wide_s = ((Ints)((Words)s << (24 - 8 * byte))) >> 24;
    sum += wide_u * wide_s;
  }
  return sum;
#endif
}
#endif

// Per lane: sum += the four products of (w - 128) with a, if the sum began at -kByteBias * sum(a).
//   w  unsigned bytes: a weight from -128 to 127, plus 128;  a  signed bytes from -127 to 127
STAGECRAFT_INLINE Ints dot_q8(Ints sum, Ints w, Ints a) {
#if defined(__AVX512VNNI__)
  return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)a);
#elif defined(__AVXVNNI__)
  return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)a);
#elif defined(__AVX512BW__)
  const __m512i sign_off = (__m512i)(w ^ (Ints)(Words{} + 0x80808080u));
  const __mmask64 negative = _mm512_movepi8_mask(sign_off);
  const __m512i signed_a =
      _mm512_mask_sub_epi8((__m512i)a, negative, _mm512_setzero_si512(), (__m512i)a);
  return dot_bytes(sum, (Ints)_mm512_abs_epi8(sign_off), (Ints)signed_a);
#elif defined(__AVX2__)
  const __m256i sign_off = (__m256i)(w ^ (Ints)(Words{} + 0x80808080u));
  return dot_bytes(sum, (Ints)_mm256_abs_epi8(sign_off),
                   (Ints)_mm256_sign_epi8((__m256i)a, sign_off));
#elif defined(__ARM_FEATURE_MATMUL_INT8)
  return vusdotq_s32(sum, vreinterpretq_u8_s32(w), vreinterpretq_s8_s32(a));
#elif defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, vreinterpretq_s8_s32(w ^ (Ints)(Words{} + 0x80808080u)),
                   vreinterpretq_s8_s32(a));
#elif defined(__aarch64__)
  const int8x16_t weight = vreinterpretq_s8_s32(w ^ (Ints)(Words{} + 0x80808080u));
  const int8x16_t other = vreinterpretq_s8_s32(a);
  const int16x8_t low = vmull_s8(vget_low_s8(weight), vget_low_s8(other));
  const int16x8_t high = vmull_high_s8(weight, other);
  return sum + (Ints)vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
#else
  for (int byte = 0; byte < 4; ++byte) {
    const Ints wide_w = ((Ints)((Words)w >> (8 * byte)) & 0xff) - 128;
    const Ints wide_a = ((Ints)((Words)a << (24 - 8 * byte))) >> 24;
    sum += wide_w * wide_a;
  }
  return sum;
#endif
}

// Per lane: sum += the four products of small unsigned bytes, 0 to 63, with a.
STAGECRAFT_INLINE Ints dot_small(Ints sum, Ints w, Ints a) {
#if defined(__AVX512VNNI__)
  return (Ints)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)a);
#elif defined(__AVXVNNI__)
  return (Ints)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)a);
#elif defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(sum, vreinterpretq_s8_s32(w), vreinterpretq_s8_s32(a));
#else
  return dot_bytes(sum, w, a);
#endif
}

// Two dot_small in one: sum += w * a and next_w * next_a. If the processor computes products as
// 16-bit sums of two, the sums of both fit into 16 bits (4 * 63 * 127) and are widened only once.
STAGECRAFT_INLINE Ints dot_two_small(Ints sum, Ints w, Ints a, Ints next_w, Ints next_a) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || !defined(__AVX2__)
  return dot_small(dot_small(sum, w, a), next_w, next_a);
#elif defined(__AVX512BW__)
  return add_widened(sum, _mm512_add_epi16(_mm512_maddubs_epi16((__m512i)w, (__m512i)a),
                                           _mm512_maddubs_epi16((__m512i)next_w, (__m512i)next_a)));
#else
  return add_widened(sum, _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)w, (__m256i)a),
                                           _mm256_maddubs_epi16((__m256i)next_w, (__m256i)next_a)));
#endif
}

// Two rows of eight bytes times two rows: lane 2 * i + j of sum += the products of row i of w
// (unsigned) with row j of a (signed).
#if defined(__ARM_FEATURE_MATMUL_INT8)
STAGECRAFT_INLINE Ints dot_pairs(Ints sum, Ints w, Ints a) {
  return vusmmlaq_s32(sum, vreinterpretq_u8_s32(w), vreinterpretq_s8_s32(a));
}
#endif

// Per lane: sum += the products of two bf16 with two bf16.
#if defined(__AVX512BF16__)
STAGECRAFT_INLINE Vec dot_bf16(Vec sum, Ints w, Ints a) {
#if defined(__clang__) && __clang_major__ == 16  // it crashes if a broadcast is cast to bf16
  asm("" : "+v"(a));
#endif
  return _mm512_dpbf16_ps(sum, (__m512bh)w, (__m512bh)a);
}
#endif

// v * 2^n, n whole; v from 0.5 to 2, n from -126 to 128.
STAGECRAFT_INLINE Vec times_power_of_2(Vec v, Vec n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(v, n);
#else
  return v * as_float((to_ints(n) + 127) << 23);
#endif
}

// The polynomial of x with these coefficients; that of the highest power comes first.
template <class... Rest>
STAGECRAFT_INLINE Vec polynomial(Vec x, float highest, Rest... rest) {
  Vec p = broadcast(highest);
  ((p = fma(p, x, broadcast(rest))), ...);
  return p;
}

// e^x to about 2 units in the last place; 0 below -87.33, infinity above 88.72 (without AVX-512:
// from 88.37 on). e^x = 2^n * e^r with n whole and |r| <= log(2) / 2. e^r is the polynomial
// 1 + r + r^2 * (c0 + ... + c4 r^4) whose largest relative error is as small as possible, 3e-9. The
// coefficients were found by weighted least squares.
STAGECRAFT_INLINE Vec exp(Vec x) {
  const Vec low = broadcast(-87.33f);
  const Vec clamped = max(low, min(broadcast(89.0f), x));  // in this order, NaN stays
  const Vec n = nearest(clamped * broadcast(1.44269504f));
  Vec r =
      fma(n, broadcast(-0.693359375f), clamped);  // log(2) in two parts, the first exact in n * it
  r = fma(n, broadcast(2.12194440e-4f), r);
  const Vec p = polynomial(r, 0x1.6a23d0p-10f, 0x1.123a20p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f,
                           0x1.fffffcp-2f, 1.0f, 1.0f);
  return x < low ? Vec{} : times_power_of_2(p, n);
}

// 2^x for x <= 0, with a relative error below 2e-7; 0 below -126. It takes fewer instructions than
// exp: r = x - n is exact. 2^r is the polynomial 1 + c1 r + ... + c5 r^5, fitted as in exp.
STAGECRAFT_INLINE Vec exp2(Vec x) {
  const Vec n = nearest(x), r = x - n;
  const Vec p = polynomial(r, 0x1.5bba14p-10f, 0x1.3cea88p-7f, 0x1.c6b752p-5f, 0x1.ebf9bcp-3f,
                           0x1.62e42ap-1f, 1.0f);
  return x < broadcast(-126.0f) ? Vec{} : times_power_of_2(p, n);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
