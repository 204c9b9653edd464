#pragma once

#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// The peak speed of this processor: multiply-adds on registers only, in so many independent chains
// that none waits for another. Benchmarks compare kernels with it.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// An instruction takes up to six cycles (vdpbf16ps), and two start per cycle: at least 12 chains.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int kChains = 16;  // of 32 registers
#else
constexpr int kChains = 12;  // of 16
#endif

// `multiply` computes the next value of a chain. Returns a sum over all chains, so that the
// compiler drops none.
template <class V, class Multiply>
STAGECRAFT_INLINE float run_chains(std::size_t rounds, V start, Multiply multiply) {
  V chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = start;
  for (std::size_t round = 0; round < rounds; ++round) {
    STAGECRAFT_UNROLL
    for (int i = 0; i < kChains; ++i) chain[i] = multiply(chain[i]);
  }
  float total = 0.0f;
  for (int i = 0; i < kChains; ++i) total += static_cast<float>(chain[i][0]);
  return total;
}

// Each function executes kChains * rounds instructions of kLanes lanes, with one to eight products
// per lane. It returns the number of operations; a multiply-add is two.
double peak_f32(std::size_t rounds, float* sink) {
  const Vec a = broadcast(*sink), b = broadcast(1e-9f);
  *sink = run_chains(rounds, a, [&](Vec v) STAGECRAFT_INLINED { return fma(v, b, a); });
  return 2.0 * kChains * kLanes * static_cast<double>(rounds);
}

// The bytes of rows alternate between 1 and -1, those of weights are all equal: every sum stays
// small.
double peak_bytes(std::size_t rounds, float* sink) {
  const auto one = static_cast<std::int32_t>(*sink);
  const Ints a = broadcast(one * 0x01ff01ff), weights = broadcast(one * 0x01010101);
#if defined(__ARM_FEATURE_MATMUL_INT8)
  *sink = run_chains(rounds, weights,
                     [&](Ints v) STAGECRAFT_INLINED { return dot_pairs(v, a, weights); });
  return 2.0 * 8.0 * kChains * kLanes * static_cast<double>(rounds);
#else
#if defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)
  const auto multiply = [&](Ints v) STAGECRAFT_INLINED { return dot_q8(v, v, a); };
#else  // without the signs of weights, which on AVX2 a kernel restores once for all its rows
  const auto multiply = [&](Ints v) STAGECRAFT_INLINED { return dot_small(v, v, a); };
#endif
  *sink = run_chains(rounds, weights, multiply);
  return 2.0 * 4.0 * kChains * kLanes * static_cast<double>(rounds);
#endif
}

#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)
double peak_bf16(std::size_t rounds, float* sink) {
  const Ints a = broadcast(static_cast<std::int32_t>(*sink));
  *sink = run_chains(rounds, broadcast(*sink),
                     [&](Vec v) STAGECRAFT_INLINED { return dot_bf16(v, a, a); });
  return 2.0 * 2.0 * kChains * kLanes * static_cast<double>(rounds);
}
#endif

// Reads memory in as many places as a tile of one row does.
float sum_of(const float* x, std::size_t n, Prefetch prefetch) {
  constexpr std::size_t kSums = 8, kStreams = kTwoPanels ? 2 : 1;
  Vec sums[kSums] = {};
  const std::size_t of_stream = n / kStreams;
  for (std::size_t i = 0; i < of_stream; i += kSums * kLanes) {
    STAGECRAFT_UNROLL
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const float* const at = x + stream * of_stream + i;
      if (kPrefetchesTwoLevels && prefetch == Prefetch::FromMemory) {
        prefetch_from_memory<sizeof sums>(reinterpret_cast<const std::byte*>(at));
      }
      STAGECRAFT_UNROLL
      for (std::size_t s = 0; s < kSums; ++s) sums[s] += load(at + s * kLanes);
    }
  }
  Vec total = {};
  for (const Vec& one : sums) total += one;
  return sum(total);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
