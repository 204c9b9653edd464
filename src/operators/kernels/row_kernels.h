#pragma once

#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// Operations on rows, between the matrix products. Every function computes whole vectors first,
// then the rest in a last vector that is filled up with zeros.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Loads n < kLanes numbers; the other lanes are 0.
STAGECRAFT_INLINE Vec load_part(const float* from, std::size_t n) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), from);
#else
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; ++i) lanes[i] = from[i];
  return load(lanes);
#endif
}
STAGECRAFT_INLINE void store_part(float* to, Vec v, std::size_t n) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << n) - 1), v);
#else
  float lanes[kLanes];
  store(lanes, v);
  for (std::size_t i = 0; i < n; ++i) to[i] = lanes[i];
#endif
}

// Calls each(get, put) once per vector of n numbers. get(x) loads that vector of x, put(x, v)
// stores it. The last vector may have fewer than kLanes numbers.
template <class Each>
STAGECRAFT_INLINE void for_vectors(std::size_t n, Each each) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    each([i](const float* x) { return load(x + i); }, [i](float* x, Vec v) { store(x + i, v); });
  }
  if (i == n) return;
  each([i, n](const float* x) { return load_part(x + i, n - i); },
       [i, n](float* x, Vec v) { store_part(x + i, v, n - i); });
}

// An addition waits for the previous one to the same sum, so there are four sums.
STAGECRAFT_INLINE float sum_of_squares(const float* x, std::size_t n) {
  constexpr std::size_t kSums = 4;
  Vec squares[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    STAGECRAFT_UNROLL
    for (std::size_t s = 0; s < kSums; ++s) {
      const Vec v = load(x + i + s * kLanes);
      squares[s] = fma(v, v, squares[s]);
    }
  }
  for_vectors(n - i, [&](auto get, auto) { squares[0] = fma(get(x + i), get(x + i), squares[0]); });
  return sum((squares[0] + squares[1]) + (squares[2] + squares[3]));
}

void rms_norm(const float* x, const float* weight, std::size_t n, float eps, float* out) {
  const float mean = sum_of_squares(x, n) / static_cast<float>(n);
  const Vec scale = broadcast(1.0f / __builtin_sqrtf(mean + eps));
  if (weight == nullptr) {
    return for_vectors(n, [&](auto get, auto put) { put(out, get(x) * scale); });
  }
  for_vectors(n, [&](auto get, auto put) { put(out, get(weight) * (get(x) * scale)); });
}

// `out` keeps x - mean before the squares are summed, so that the lanes that fill up the last
// vector count as 0, not as 0 - mean.
void layer_norm(const float* x, const float* weight, const float* bias, std::size_t n, float eps,
                float* out) {
  Vec total = {};
  for_vectors(n, [&](auto get, auto) { total += get(x); });
  const Vec mean = broadcast(sum(total) / static_cast<float>(n));
  for_vectors(n, [&](auto get, auto put) { put(out, get(x) - mean); });
  const float variance = sum_of_squares(out, n) / static_cast<float>(n);
  const Vec scale = broadcast(1.0f / __builtin_sqrtf(variance + eps));
  for_vectors(n, [&](auto get, auto put) {
    const Vec w = weight == nullptr ? broadcast(1.0f) : get(weight);
    put(out, fma(w, get(out) * scale, bias == nullptr ? Vec{} : get(bias)));
  });
}

void l2_norm(const float* x, std::size_t n, float eps, float scale, float* out) {
  const Vec factor = broadcast(scale / __builtin_sqrtf(sum_of_squares(x, n) + eps));
  for_vectors(n, [&](auto get, auto put) { put(out, get(x) * factor); });
}

// Reads the state twice. First it computes S^T k, the value that S holds for the key; `kept` is
// multiplied in afterwards. Then one loop lets S fade, corrects it, and reads it with the query.
// The first sum uses kChains accumulators, because each addition waits for the previous one.
void delta_rule(const DeltaArgs& args) {
  constexpr std::size_t kValueVecs = kPanelOutputs / kLanes;
  constexpr std::size_t kChains = kValueVecs < 8 ? 8 / kValueVecs : 1;
  const auto at = [&](std::size_t i, std::size_t c)
                      STAGECRAFT_INLINED { return args.state + i * kPanelOutputs + c * kLanes; };
  Vec held[kChains][kValueVecs] = {};
  std::size_t i = 0;
  for (; i + kChains <= args.n_keys; i += kChains) {
    STAGECRAFT_UNROLL
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      const Vec k = broadcast(args.k[i + chain]);
      STAGECRAFT_UNROLL
      for (std::size_t c = 0; c < kValueVecs; ++c) {
        held[chain][c] = fma(k, load(at(i + chain, c)), held[chain][c]);
      }
    }
  }
  for (; i < args.n_keys; ++i) {
    for (std::size_t c = 0; c < kValueVecs; ++c) {
      held[0][c] = fma(broadcast(args.k[i]), load(at(i, c)), held[0][c]);
    }
  }
  float lanes[kPanelOutputs] = {};
  for (std::size_t n = 0; n < args.n_values; ++n) lanes[n] = args.v[n];
  const Vec kept = broadcast(args.kept), write_strength = broadcast(args.write_strength);
  Vec delta[kValueVecs], result[kValueVecs] = {};
  for (std::size_t c = 0; c < kValueVecs; ++c) {
    Vec sum = held[0][c];
    for (std::size_t chain = 1; chain < kChains; ++chain) sum += held[chain][c];
    delta[c] = write_strength * (load(lanes + c * kLanes) - kept * sum);
  }
  for (i = 0; i < args.n_keys; ++i) {
    const Vec k = broadcast(args.k[i]), q = broadcast(args.q[i]);
    STAGECRAFT_UNROLL
    for (std::size_t c = 0; c < kValueVecs; ++c) {
      const Vec s = fma(k, delta[c], kept * load(at(i, c)));
      store(at(i, c), s);
      result[c] = fma(q, s, result[c]);
    }
  }
  for (std::size_t c = 0; c < kValueVecs; ++c) store(lanes + c * kLanes, result[c]);
  for (std::size_t n = 0; n < args.n_values; ++n) args.out[n] = lanes[n];
}

STAGECRAFT_INLINE Vec silu(Vec x) { return x / (broadcast(1.0f) + exp(-x)); }

// The tanh form of GELU is SiLU with another exponent: (1 + tanh(y)) / 2 = 1 / (1 + e^(-2y)).
STAGECRAFT_INLINE Vec gelu_tanh(Vec x) {
  const Vec cubic = broadcast(-2.0f * 0.7978845608f * 0.044715f);
  const Vec linear = broadcast(-2.0f * 0.7978845608f);
  return x / (broadcast(1.0f) + exp(x * fma(x * x, cubic, linear)));
}

// x / 2 * erfc(-x / sqrt(2)). With z = |x| / sqrt(2) and t = 1 / (1 + 0.4 z), erfc(z) is e^(-z^2)
// times a polynomial of t (the form of Abramowitz and Stegun 7.1.26; these coefficients are fitted
// for the least relative error, 7e-8 for z < 11). erfc(-z) = 2 - erfc(z).
STAGECRAFT_INLINE Vec gelu(Vec x) {
  const Vec z = abs(x) * broadcast(0.7071067812f);
  const Vec t = broadcast(1.0f) / fma(z, broadcast(0.4f), broadcast(1.0f));
  const Vec p = polynomial(t, 0.042881193f, -0.14826056f, 0.10044267f, 0.069097064f, 0.09280988f,
                           0.18783007f, 0.20330957f, 0.22624434f, 0.22564584f);
  // x / 2 * erfc(z). From |x| = 15 on, it is 0 in f32. Without a limit, infinity * 0 would be NaN.
  const Vec y = min(broadcast(15.0f), max(broadcast(-15.0f), x));
  const Vec tail = broadcast(0.5f) * y * (p * t * exp(broadcast(-0.5f) * (y * y)));
  return x < Vec{} ? tail : x - tail;
}

// NaN stays NaN.
STAGECRAFT_INLINE Vec relu(Vec x) { return x < Vec{} ? Vec{} : x; }

STAGECRAFT_INLINE Vec sigmoid(Vec x) { return broadcast(1.0f) / (broadcast(1.0f) + exp(-x)); }
STAGECRAFT_INLINE Vec identity(Vec x) { return x; }

template <Vec function(Vec)>
void activate_rows(const float* gate, const float* up, std::size_t n, float* out) {
  if (up == nullptr) {
    for_vectors(n, [&](auto get, auto put) { put(out, function(get(gate))); });
  } else {
    for_vectors(n, [&](auto get, auto put) { put(out, function(get(gate)) * get(up)); });
  }
}

// In this order of operands, NaN stays NaN.
void clamped_swiglu(const float* gate, const float* up, std::size_t n, float alpha, float limit,
                    float* out) {
  const Vec low = broadcast(-limit), high = broadcast(limit), one = broadcast(1.0f);
  const Vec slope = broadcast(-alpha);
  for_vectors(n, [&](auto get, auto put) {
    const Vec g = min(high, get(gate)), u = min(high, max(low, get(up)));
    put(out, g / (one + exp(slope * g)) * (u + one));
  });
}

// tanh(y) = 1 - 2 / (1 + e^(2y))
void soft_cap(float* x, std::size_t n, float scale, float cap) {
  const Vec factor = broadcast(2.0f * scale / cap);
  const Vec c = broadcast(cap), twice = broadcast(2.0f * cap), one = broadcast(1.0f);
  for_vectors(n, [&](auto get, auto put) { put(x, c - twice / (one + exp(get(x) * factor))); });
}

// In this order of operands, NaN stays NaN.
void clip(float* x, std::size_t n, float limit) {
  const Vec low = broadcast(-limit), high = broadcast(limit);
  for_vectors(n, [&](auto get, auto put) { put(x, min(high, max(low, get(x)))); });
}

void alibi(float* x, std::size_t n, float scale, float slope, float first) {
  float places[kLanes];
  for (std::size_t i = 0; i < kLanes; ++i) places[i] = first + static_cast<float>(i);
  Vec place = load(places);
  const Vec factor = broadcast(scale), s = broadcast(slope);
  for_vectors(n, [&](auto get, auto put) {
    put(x, fma(get(x), factor, s * place));
    place += broadcast(static_cast<float>(kLanes));
  });
}

void rope(const float* x, const float* cos, const float* sin, std::size_t half, float* out) {
  for_vectors(half, [&](auto get, auto put) {
    const Vec a = get(x), b = get(x + half), c = get(cos), s = get(sin);
    put(out, a * c - b * s);
    put(out + half, b * c + a * s);
  });
}

// The pairs are separated and joined again in memory, so that the arithmetic uses vectors.
void neighbour_rope(const float* x, const float* cos, const float* sin, std::size_t half,
                    float* out) {
  for (std::size_t i = 0; i < half; i += kLanes) {
    const std::size_t n = half - i < kLanes ? half - i : kLanes;
    float first[kLanes] = {}, second[kLanes] = {};
    for (std::size_t k = 0; k < n; ++k) {
      first[k] = x[2 * (i + k)];
      second[k] = x[2 * (i + k) + 1];
    }
    const Vec a = load(first), b = load(second);
    const Vec c = n == kLanes ? load(cos + i) : load_part(cos + i, n);
    const Vec s = n == kLanes ? load(sin + i) : load_part(sin + i, n);
    store(first, a * c - b * s);
    store(second, b * c + a * s);
    for (std::size_t k = 0; k < n; ++k) {
      out[2 * (i + k)] = first[k];
      out[2 * (i + k) + 1] = second[k];
    }
  }
}

void add(const float* y, std::size_t n, float* x) {
  for_vectors(n, [&](auto get, auto put) { put(x, get(x) + get(y)); });
}

void add_scaled(float factor, const float* y, std::size_t n, float* x) {
  const Vec f = broadcast(factor);
  for_vectors(n, [&](auto get, auto put) { put(x, fma(f, get(y), get(x))); });
}

void add_product(const float* y, const float* z, std::size_t n, float* x) {
  for_vectors(n, [&](auto get, auto put) { put(x, fma(get(y), get(z), get(x))); });
}

void scale(float factor, std::size_t n, float* x) {
  const Vec f = broadcast(factor);
  for_vectors(n, [&](auto get, auto put) { put(x, get(x) * f); });
}

float softmax_block(float* scores, std::size_t n, float scale, float* max_so_far,
                    float* sum_so_far) {
  const Vec s = broadcast(scale);
  Vec largest[2] = {broadcast(*max_so_far), broadcast(*max_so_far)};
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    largest[0] = max(largest[0], load(scores + i) * s);
    largest[1] = max(largest[1], load(scores + i + kLanes) * s);
  }
  const float new_max = max(max(largest[0], largest[1]));
  const float factor = exp2(broadcast(*max_so_far - new_max))[0];
  const Vec m = broadcast(new_max);
  Vec total[2] = {};
  for (std::size_t i = 0; i < n; i += 2 * kLanes) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < 2; ++v) {
      float* const at = scores + i + v * kLanes;
      const Vec p = exp2(load(at) * s - m);  // rounded as above, so at most 2^0
      store(at, p);
      total[v] += p;
    }
  }
  *max_so_far = new_max;
  *sum_so_far = *sum_so_far * factor + sum(total[0] + total[1]);
  return factor;
}

// out[i] = round(x[i]), where `round` makes Halves from a Vec.
template <class Round>
STAGECRAFT_INLINE void to_halves(const float* x, std::size_t n, std::uint16_t* out, Round round) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const Halves halves = round(load(x + i));
    std::memcpy(out + i, &halves, sizeof halves);
  }
  if (i == n) return;
  const Halves halves = round(load_part(x + i, n - i));
  for (std::size_t lane = 0; i < n; ++i, ++lane) out[i] = halves[lane];
}

void to_bf16(const float* x, std::size_t n, std::uint16_t* out) {
  to_halves(x, n, out, [](Vec v) STAGECRAFT_INLINED {
#if defined(__AVX512BF16__)
    return (Halves)_mm512_cvtneps_pbh(v);  // 0 below 1.2e-38; the kernels read it as 0, too
#else
    const Words bits = (Words)as_ints(v);
    const Words rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return __builtin_convertvector(v == v ? rounded : bits >> 16 | 0x40, Halves);
#endif
  });
}

void to_f16(const float* x, std::size_t n, std::uint16_t* out) {
  to_halves(x, n, out, [](Vec v) STAGECRAFT_INLINED { return rounded_to_f16(v); });
}

constexpr std::size_t kVecsOfBlock = kQuantBlock / kLanes;

// Stores 32 integers from -127 to 127 as bytes, and returns the sums of these bytes.
STAGECRAFT_INLINE BlockSums put_block(const Ints (&q)[kVecsOfBlock], std::int8_t* bytes) {
#if defined(__AVX2__)
#if defined(__AVX512F__)
  // Packing joins the two vectors 128 bits by 128 bits; the permutation restores the order.
  const __m512i words = _mm512_packs_epi32((__m512i)q[0], (__m512i)q[1]);
  const __m256i mixed = _mm512_cvtepi16_epi8(words);
  const __m256i order = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
#else
  const __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32((__m256i)q[0], (__m256i)q[1]),
                                           _mm256_packs_epi32((__m256i)q[2], (__m256i)q[3]));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
#endif
  const __m256i block = _mm256_permutevar8x32_epi32(mixed, order);
  std::memcpy(bytes, &block, sizeof block);
  // Sums of eight unsigned bytes each: the bytes + 128.
  const __m256i eights =
      _mm256_sad_epu8(_mm256_xor_si256(block, _mm256_set1_epi8(-128)), _mm256_setzero_si256());
  const __m128i first = _mm256_castsi256_si128(eights), last = _mm256_extracti128_si256(eights, 1);
  const auto low = [](__m128i two) STAGECRAFT_INLINED {
    return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_unpackhi_epi64(two, two)));
  };
  return {low(_mm_add_epi32(first, last)) - 128 * 32, low(first) - 128 * 16};
#elif defined(__aarch64__)
  const auto to_words = [&](std::size_t v) STAGECRAFT_INLINED {
    return vcombine_s16(vmovn_s32((int32x4_t)q[v]), vmovn_s32((int32x4_t)q[v + 1]));
  };
  const auto to_bytes = [&](std::size_t v) STAGECRAFT_INLINED {
    return vcombine_s8(vmovn_s16(to_words(v)), vmovn_s16(to_words(v + 2)));
  };
  const int8x16_t first = to_bytes(0), last = to_bytes(4);
  vst1q_s8(bytes, first);
  vst1q_s8(bytes + 16, last);
  const std::int32_t sum = vaddlvq_s8(first);
  return {sum + vaddlvq_s8(last), sum};
#else
  BlockSums sums = {};
  for (std::size_t i = 0; i < kQuantBlock; ++i) {
    bytes[i] = static_cast<std::int8_t>(q[i / kLanes][i % kLanes]);
    sums.all += bytes[i];
    if (i < kQuantBlock / 2) sums.first_half += bytes[i];
  }
  return sums;
#endif
}

// How numbers become bytes: byte = x * inverse, rounded, and x is about scale * byte.
struct ByteScale {
  float scale, inverse;
};

// For n numbers, a multiple of 32. The scale is NaN if one of them is NaN or infinity. Finds the
// largest magnitude by comparing bits as integers: without the sign, they are in the same order as
// the numbers, and NaN comes after all numbers.
STAGECRAFT_INLINE ByteScale byte_scale(const float* x, std::size_t n) {
  constexpr float kSmallest = 1e-36f;  // 127 / top would overflow
  Ints largest = {};
  for (std::size_t i = 0; i < n; i += kLanes) largest = max(largest, as_ints(abs(load(x + i))));
  const float top = __builtin_bit_cast(float, max(largest));
  if (!(top <= __FLT_MAX__)) return {__builtin_nanf(""), 0.0f};
  return {top / 127.0f, top < kSmallest ? 0.0f : 127.0f / top};
}

// Rounds 32 numbers to bytes, and returns the sums of these. If the scale is NaN, all bytes are 0.
STAGECRAFT_INLINE BlockSums round_block(const float* x, const ByteScale& by, std::int8_t* bytes) {
  if (by.scale != by.scale) {
    std::memset(bytes, 0, kQuantBlock);
    return {};
  }
  const Vec inverse = broadcast(by.inverse);
  Ints q[kVecsOfBlock];
  STAGECRAFT_UNROLL
  for (std::size_t v = 0; v < kVecsOfBlock; ++v) {
    q[v] = to_nearest_ints(load(x + v * kLanes) * inverse);
  }
  return put_block(q, bytes);
}

void to_q8(const float* x, std::size_t n, std::int8_t* bytes, float* scales, BlockSums* sums) {
  for (std::size_t b = 0; b < n / kQuantBlock; ++b, x += kQuantBlock, bytes += kQuantBlock) {
    const ByteScale by = byte_scale(x, kQuantBlock);
    scales[b] = by.scale;
    sums[b] = round_block(x, by, bytes);
  }
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
