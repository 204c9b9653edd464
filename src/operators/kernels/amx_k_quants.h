#pragma once

#include <algorithm>

#include "operators/kernels/amx_tiles.h"
#include "operators/kernels/row_kernels.h"
#include "operators/kernels/unpacked_blocks.h"

// Products of K-quants, for processors with AMX. Their scales are whole numbers times d, and d
// belongs to 256 inputs. The bytes of rows get a scale per 256 inputs, too (Q8KBlock). So the
// products of 256 inputs are added as whole numbers:
//
//     d * scale of the row * sum of (scale * weight * byte)
//     - dmin * scale of the row * sum of (minimum * sum of bytes)
//
// Both sums are exact, so AMX and vector instructions get the same bits. For AMX, scale * weight is
// one number of up to 13 bits, in two bytes: 128 * high + low.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// ---- rows ---------------------------------------------------------------------------------------

// The bf16 of two whole numbers, `first` in the lower half of each word. bf16 must hold both
// exactly.
STAGECRAFT_INLINE void put_pair(Ints first, Ints second, void* to) {
  const auto bits = [](Ints number) STAGECRAFT_INLINED { return as_ints(to_float(number)); };
  const Ints pair = (Ints)((Words)bits(first) >> 16) | bits(second);
  std::memcpy(to, &pair, sizeof pair);
}

void to_q8_k(const float* x, std::size_t n, Q8KBlock* out) {
  for (Q8KBlock* const end = out + n / kKBlock; out != end; ++out, x += kKBlock) {
    const ByteScale by = byte_scale(x, kKBlock);
    out->scale = by.scale;
    for (std::size_t b = 0; b < kKBlock / kQuantBlock; ++b) {
      out->sums[b] = round_block(x + b * kQuantBlock, by, out->bytes + b * kQuantBlock);
    }
    const __m512i both = (__m512i)load_ints(out->sums);  // all, first_half, all, first_half ...
    const __m512i swapped = _mm512_shuffle_epi32(both, _MM_PERM_CDAB);  // first_half, all ...
    const Ints halves = (Ints)_mm512_mask_sub_epi32(swapped, 0xaaaa, swapped, both);
    const Ints sixteens = (halves + 8) & -16;
    put_pair(sixteens, halves - sixteens, out->sums_as_bf16);
  }
}

// ---- few rows -----------------------------------------------------------------------------------

constexpr int kFewK = 8;  // for more rows, unpacking for AMX takes less time

template <int Rows, WeightLayout kLayout>
void tile_few_k(const TileArgs& t) {
  using Unpacking = Unpacking<kLayout>;
  alignas(64) std::int32_t scales[Unpacking::kScaleBlocks][kPanelOutputs],
      minima[Unpacking::kScaleBlocks][kPanelOutputs];
  const auto block_of = [&](int r, std::size_t k) STAGECRAFT_INLINED -> const Q8KBlock& {
    return static_cast<const Q8KBlock*>(t.rows)[r * t.row_stride + k];
  };
  tile<Rows, kVecs>(t, [&](std::size_t, Vec(&acc)[Rows][kVecs]) STAGECRAFT_INLINED {
    const std::byte* at = t.panel;
    for (std::size_t k = 0; k < t.inputs / kKBlock; ++k) {
      const auto* const d = reinterpret_cast<const std::uint16_t*>(at);
      Ints products[Rows][kVecs] = {}, of_minima[Rows][kVecs] = {};
      const auto get_scales = [&](std::size_t, const std::byte* stored) STAGECRAFT_INLINED {
        for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
          const auto put = [&](std::size_t i, Ints scale, Ints minimum) STAGECRAFT_INLINED {
            store(&scales[i][lane], scale);
            if constexpr (Unpacking::kMinima) store(&minima[i][lane], minimum);
          };
          Unpacking::read_scales(stored, lane, put);
        }
      };
      const auto multiply = [&](std::size_t b, const std::byte* weights,
                                int one) STAGECRAFT_INLINED {
        constexpr std::size_t kStep = kPanelBytes<Unpacking> / kBlocks<Unpacking>;
        prefetch_ahead<Rows, kStep>(t, weights + kStep * one);
        const std::size_t first = Unpacking::kInputs * b;
        const auto sum = [&](int r) STAGECRAFT_INLINED {
          return sum_of<Unpacking>(block_of(r, k).sums[first / kQuantBlock], first);
        };
        Ints dot[Rows][kVecs];
        begin_dots(Unpacking::kBias, sum, dot);
        STAGECRAFT_UNROLL
        for (int j = 0; j < kTwos<Unpacking>; ++j) {
          const std::size_t input = first + first_of<Unpacking>(j);
          TwoFours two[kVecs];
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < kVecs; ++v) {
            two[v] = Unpacking::two(weights, one, j, kLanes * v);
          }
          STAGECRAFT_UNROLL
          for (int r = 0; r < Rows; ++r) {
            const std::int8_t* const bytes = block_of(r, k).bytes + input;
            const Ints x = broadcast(load_as<std::int32_t>(bytes));
            const Ints y = broadcast(load_as<std::int32_t>(bytes + Unpacking::kApart));
            STAGECRAFT_UNROLL
            for (std::size_t v = 0; v < kVecs; ++v) {
              dot[r][v] = dot_q8(dot_q8(dot[r][v], two[v].first, x), two[v].second, y);
            }
          }
        }
        const std::size_t stored = b % Unpacking::kScaleBlocks;
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          const Ints scale = load_ints(&scales[stored][kLanes * v]);
          STAGECRAFT_UNROLL
          for (int r = 0; r < Rows; ++r) products[r][v] += scale * dot[r][v];
          if constexpr (Unpacking::kMinima) {
            const Ints minimum = load_ints(&minima[stored][kLanes * v]);
            STAGECRAFT_UNROLL
            for (int r = 0; r < Rows; ++r) of_minima[r][v] += minimum * broadcast(sum(r));
          }
        }
      };
      at = for_blocks<Unpacking>(at + Unpacking::kHeadBytes, kBlocks<Unpacking>, get_scales,
                                 multiply);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const Vec scale = broadcast(block_of(r, k).scale);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          const std::uint16_t* const of_vec = d + kLanes * v;
          acc[r][v] = fma(to_float(products[r][v]), load_f16(of_vec) * scale, acc[r][v]);
          if constexpr (Unpacking::kMinima) {
            const Vec dmin = load_f16(of_vec + kPanelOutputs);
            acc[r][v] = fma(to_float(of_minima[r][v]), -(dmin * scale), acc[r][v]);
          }
        }
      }
    }
  });
}

// ---- more rows ----------------------------------------------------------------------------------

// 256 inputs of a panel, unpacked, with scales and minima as stored.
template <class Unpacking>
struct KBlocks {
  alignas(64) std::int8_t weights[kBlocks<Unpacking>][Unpacking::kInputs / 4][kPanelOutputs][4];
  alignas(64) std::int32_t scales[kBlocks<Unpacking>][kPanelOutputs];
  alignas(64) std::int32_t minima[kBlocks<Unpacking>][kPanelOutputs];
  alignas(64) float d[kPanelOutputs], dmin[kPanelOutputs];

  // Returns where the next 256 inputs begin.
  STAGECRAFT_INLINE const std::byte* unpack(const std::byte* at, KBlocks& blocks) {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(at);
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      store(&blocks.d[lane], load_f16(halves + lane));
      if constexpr (Unpacking::kMinima) {
        store(&blocks.dmin[lane], load_f16(halves + kPanelOutputs + lane));
      }
    }
    const auto get_scales = [&](std::size_t b, const std::byte* stored) STAGECRAFT_INLINED {
      for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
        const auto put = [&](std::size_t i, Ints scale, Ints minimum) STAGECRAFT_INLINED {
          store(&blocks.scales[b + i][lane], scale);
          if constexpr (Unpacking::kMinima) store(&blocks.minima[b + i][lane], minimum);
        };
        Unpacking::read_scales(stored, lane, put);
      }
    };
    const auto get_weights =
        [&](std::size_t b, const std::byte* stored, int one)
            STAGECRAFT_INLINED { unpack_weights<true, Unpacking>(stored, one, blocks.weights[b]); };
    return for_blocks<Unpacking>(at + Unpacking::kHeadBytes, kBlocks<Unpacking>, get_scales,
                                 get_weights);
  }
};

// 256 inputs of a panel for AMX: the two bytes of scale * weight, and the minimum of each 16 inputs
// as bf16, twice: for both parts of Q8KBlock::sums_as_bf16.
struct KPanel {
  static constexpr std::size_t kMinima = kKBlock / 16;
  alignas(64) std::int8_t high[kKBlock / 4][kPanelOutputs][4], low[kKBlock / 4][kPanelOutputs][4];
  alignas(64) std::byte minima[kMinima][kBf16PairBytes];
};

// The bytes 0, 2, 4 ... of `even`, and the bytes 1, 3, 5 ... of `odd`.
STAGECRAFT_INLINE __m512i even_bytes(__m512i even, __m512i odd) {
  constexpr int kSelect = 0xca;  // the first argument chooses between the others, bit by bit
  return _mm512_ternarylogic_epi32(_mm512_set1_epi16(0xff), even, odd, kSelect);
}

template <class Unpacking>
STAGECRAFT_INLINE const std::byte* unpack_for_amx(const std::byte* at, KBlocks<Unpacking>& blocks,
                                                  KPanel& panel) {
  constexpr std::size_t kGroups = Unpacking::kInputs / 4;
  at = KBlocks<Unpacking>::unpack(at, blocks);
  for (std::size_t i = 0; i < kBlocks<Unpacking>; ++i) {
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const Ints scale = load_ints(&blocks.scales[i][lane]);
      const auto twice = (__m512i)((scale & 0xffff) | (scale << 16));
      STAGECRAFT_UNROLL
      for (std::size_t g = 0; g < kGroups; ++g) {
        const auto four = (__m512i)load_ints(blocks.weights[i][g][lane]);
        const __m512i even = _mm512_mullo_epi16(_mm512_srai_epi16(_mm512_slli_epi16(four, 8), 8),
                                                twice);  // of the inputs 0 and 2
        const __m512i odd = _mm512_mullo_epi16(_mm512_srai_epi16(four, 8), twice);  // of 1 and 3
        const __m512i high = even_bytes(_mm512_srai_epi16(even, 7), _mm512_slli_epi16(odd, 1));
        const __m512i low =
            _mm512_and_si512(even_bytes(even, _mm512_slli_epi16(odd, 8)), _mm512_set1_epi8(0x7f));
        _mm512_store_si512(panel.high[kGroups * i + g][lane], high);
        _mm512_store_si512(panel.low[kGroups * i + g][lane], low);
      }
      if constexpr (Unpacking::kMinima) {
        const Ints minimum = load_ints(&blocks.minima[i][lane]);
        constexpr std::size_t kTimes = KPanel::kMinima / kBlocks<Unpacking>;
        for (std::size_t j = 0; j < kTimes; ++j) {
          put_pair(minimum, minimum, panel.minima[kTimes * i + j] + 4 * lane);
        }
      }
    }
  }
  return at;
}

// The sums of 256 inputs for 16 rows and 32 outputs, before scales are applied.
struct KSums {
  alignas(64) std::int32_t high[kAmxRows][kPanelOutputs], low[kAmxRows][kPanelOutputs];
  alignas(64) float minima[kAmxRows][kPanelOutputs];
};

// Adds the sums of up to 16 rows, the first of which is row `first` of t, to the results.
template <class Unpacking>
struct KStep {
  const TileArgs& t;
  const KBlocks<Unpacking>& blocks;
  std::size_t k;                    // of the block of 256 inputs
  float (*results)[kPanelOutputs];  // of all rows of t, before the last inputs

  STAGECRAFT_INLINE void add(const KStep& s, const KSums& sums, std::size_t first,
                             std::size_t begin, std::size_t end) {
    const bool is_last = s.k + 1 == s.t.inputs / kKBlock;
    for (std::size_t r = begin; r < end; ++r) {
      const std::size_t row = first + r;
      const auto* const rows = static_cast<const Q8KBlock*>(s.t.rows);
      const Vec scale = broadcast(rows[row * s.t.row_stride + s.k].scale);
      STAGECRAFT_UNROLL
      for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
        float* const result = &s.results[row][lane];
        const Ints product = (load_ints(&sums.high[r][lane]) << 7) + load_ints(&sums.low[r][lane]);
        Vec acc = s.k == 0 ? Vec{} : load(result);
        acc = fma(to_float(product), load(&s.blocks.d[lane]) * scale, acc);
        if constexpr (Unpacking::kMinima) {
          acc = fma(load(&sums.minima[r][lane]), -(load(&s.blocks.dmin[lane]) * scale), acc);
        }
        if (is_last) {
          write_sum(s.t.add, acc, s.t.out + row * s.t.out_stride + lane);
        } else {
          store(result, acc);
        }
      }
    }
  }
};

// Sets the registers for up to 16 rows: 0 to 5 for sums, 6 for rows, 7 for weights.
STAGECRAFT_INLINE void set_k_tiles(std::size_t rows) {
  TileShapes shapes;
  for (int tile = 0; tile < 7; ++tile) TileShapes::set(shapes, tile, rows, kAmxRowBytes);
  TileShapes::set(shapes, 7, kAmxRows, kAmxRowBytes);
  set_tiles(shapes);
}

template <WeightLayout kLayout, Tile kFew>
void tile_amx_k(const TileArgs& t, std::size_t n) {
  if (n <= kFewK) return kFew(t, n);
  using Unpacking = Unpacking<kLayout>;
  using Step = KStep<Unpacking>;
  constexpr std::size_t kParts = kKBlock / kAmxRowBytes, kRowsPerPart = kAmxRows / kParts;
  constexpr std::size_t kStride = 4 * kPanelOutputs;  // bytes per four inputs of a panel
  const std::size_t groups = (n + kAmxRows - 1) / kAmxRows;
  const TileArgs all = fetching_next_panel(t, kPanelBytes<Unpacking> * t.inputs / kKBlock);
  Ahead ahead{all.ahead, all.ahead_step * kKBlock / (groups * kParts)};
  alignas(64) float results[kAmxMostRows][kPanelOutputs];
  KSums sums[2];
  KPanel panel;
  KBlocks<Unpacking> blocks;
  const std::byte* at = t.panel;
  std::size_t set_rows = 0;  // rows for which the registers are set
  for (std::size_t k = 0; k < t.inputs / kKBlock; ++k) {
    at = unpack_for_amx(at, blocks, panel);
    finish_writes(&panel);
    const Step step{t, blocks, k, results};
    std::size_t before = 0;  // rows of the group before
    for (std::size_t r = 0; r < n; r += kAmxRows) {
      const std::size_t rows = std::min(n - r, kAmxRows);
      if (rows != set_rows) set_k_tiles(rows);
      set_rows = rows;
      const Q8KBlock* const a = static_cast<const Q8KBlock*>(t.rows) + r * t.row_stride + k;
      const std::size_t a_stride = t.row_stride * sizeof(Q8KBlock);
      KSums& mine = sums[r / kAmxRows % 2];
      const KSums& others = sums[(r / kAmxRows + 1) % 2];
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      for (std::size_t part = 0; part < kParts; ++part) {
        Ahead::fetch(ahead);
        const auto* const high = panel.high[part * kAmxRows];
        const auto* const low = panel.low[part * kAmxRows];
        _tile_stream_loadd(6, a->bytes + part * kAmxRowBytes, a_stride);
        _tile_loadd(7, high, kStride);
        _tile_dpbssd(0, 6, 7);
        _tile_loadd(7, high + kAmxOutputs, kStride);
        _tile_dpbssd(1, 6, 7);
        _tile_loadd(7, low, kStride);
        _tile_dpbssd(2, 6, 7);
        _tile_loadd(7, low + kAmxOutputs, kStride);
        _tile_dpbssd(3, 6, 7);
        // Meanwhile, vector instructions add the sums of the group before.
        Step::add(step, others, r - before, part * kRowsPerPart,
                  std::min(before, (part + 1) * kRowsPerPart));
      }
      if constexpr (Unpacking::kMinima) {
        _tile_stream_loadd(6, a->sums_as_bf16, a_stride);
        _tile_loadd(7, panel.minima[0], kStride);
        _tile_zero(4);
        _tile_dpbf16ps(4, 6, 7);
        _tile_loadd(7, panel.minima[0] + kAmxRowBytes, kStride);
        _tile_zero(5);
        _tile_dpbf16ps(5, 6, 7);
      }
      _tile_stored(0, mine.high[0], kStride);
      _tile_stored(1, mine.high[0] + kAmxOutputs, kStride);
      _tile_stored(2, mine.low[0], kStride);
      _tile_stored(3, mine.low[0] + kAmxOutputs, kStride);
      if constexpr (Unpacking::kMinima) {
        _tile_stored(4, mine.minima[0], kStride);
        _tile_stored(5, mine.minima[0] + kAmxOutputs, kStride);
      }
      finish_writes(&mine);
      before = rows;
    }
    Step::add(step, sums[(groups + 1) % 2], n - before, 0, before);
  }
  _tile_release();
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
