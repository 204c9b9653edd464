// Products with tensor cores, which multiply small tiles of halves (warp_matrix.h).
//
// A chunk is 32 neighbouring columns. Of each chunk, lane (g, t) of a warp loads columns 8t to 8t +
// 7 of rows g and g + 8 of the weights, and of row g of the activations. Two instructions multiply
// a chunk. The first one gets the lane's numbers 0 to 3, the second one numbers 4 to 7. For the
// instruction, these numbers belong to other columns. This is right, because the columns of a sum
// may be in any order, if weights and activations have the same order.
//
// The order in which a row is summed depends only on the width. The columns are cut into kSlices
// slices, each slice is summed by itself, and the slices are added up in their order. With few
// rows, each warp sums one slice, so that many loads of weights are in flight at once. With many
// rows, each warp sums all slices of a larger tile.
#include <cstring>

#include "operators/cuda/halves.h"
#include "operators/cuda/products.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"
#include "warp_matrix.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kChunk = 32;        // columns, and numbers that share a scale
constexpr unsigned kTileOutputs = 16;  // an instruction computes [kTileOutputs][kTileRows]
constexpr unsigned kTileRows = 8;
constexpr unsigned kSlices = 8;
constexpr unsigned kPairs = kPerLoad / 2;

__device__ inline unsigned slice_begin(unsigned slice, unsigned n_chunks) {
  return slice * n_chunks / kSlices;
}

template <WeightType kType>
constexpr bool kHasScales = !(kType == WeightType::F16 || kType == WeightType::BF16);
template <WeightType kType>
constexpr unsigned kLoadBytes = !kHasScales<kType>          ? 2 * kPerLoad
                                : kType == WeightType::Q8_0 ? kPerLoad
                                                            : kPerLoad / 2;

// Subtracts a number from two f16.
__device__ inline unsigned minus(unsigned bits, float number) {
  __half2 pair;
  memcpy(&pair, &bits, sizeof pair);
  pair = __hsub2(pair, __float2half2_rn(number));
  memcpy(&bits, &pair, sizeof bits);
  return bits;
}

// Eight neighbouring weights as halves, without their scale. f16 holds the integers of a block
// exactly. For n below 1024, the f16 with the bits 0x6400 + n is 1024 + n. So one subtraction turns
// an integer into an f16.
template <WeightType kType>
__device__ inline void unpack8(const unsigned char* from, unsigned (&to)[kPairs]) {
  constexpr unsigned kThousands = 0x64646464;
  if constexpr (!kHasScales<kType>) {
    const uint4 four = *reinterpret_cast<const uint4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else if constexpr (kType == WeightType::Q8_0) {
    const uint2 two = *reinterpret_cast<const uint2*>(from);
    const unsigned words[2] = {two.x ^ 0x80808080, two.y ^ 0x80808080};  // number + 128
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      to[2 * i] = minus(__byte_perm(words[i], kThousands, 0x4140), 1024.0f + 128.0f);
      to[2 * i + 1] = minus(__byte_perm(words[i], kThousands, 0x4342), 1024.0f + 128.0f);
    }
  } else {
    const unsigned word = *reinterpret_cast<const unsigned*>(from);
#pragma unroll
    for (unsigned i = 0; i < kPairs; ++i) {
      const unsigned pair = (word >> 4 * i & 0x000f000f) | 0x64006400;
      to[i] = minus(pair, kType == WeightType::Q4_0 ? 1024.0f + 8.0f : 1024.0f);
    }
  }
}

// The weights of one chunk that a lane holds: eight of row g, and eight of row g + 8.
template <WeightType kType>
struct WeightChunk {
  unsigned halves[2][kPairs];
  float scales[2], minima[2];  // for quantised weights: weight = scale * number + minimum

  __device__ inline void load_scales(const DeviceMatrix& weight, unsigned which, unsigned row,
                                     unsigned chunk) {
    if constexpr (kHasScales<kType>) {
      const size_t at = static_cast<size_t>(row) * (weight.stride / kChunk) + chunk;
      if constexpr (kType == WeightType::Q4_1) {
        const unsigned pair = static_cast<const unsigned*>(weight.scales)[at];
        scales[which] = f16_to_f32(pair & 0xffff);
        minima[which] = f16_to_f32(pair >> 16);
      } else {
        scales[which] = f16_to_f32(static_cast<const unsigned short*>(weight.scales)[at]);
      }
    }
  }
};

// The activations of one chunk of eight rows that a lane holds: eight numbers of row g. `totals`
// are the sums of the chunk in rows 2t and 2t + 1, because the lane computes results of these rows.
// A minimum is multiplied by such a sum.
struct RowChunk {
  unsigned halves[kPairs];
  float totals[2];
};

template <WeightType kType>
__device__ inline void multiply_halves(float (&sums)[4], const WeightChunk<kType>& w,
                                       const RowChunk& x) {
#pragma unroll
  for (unsigned i = 0; i < kPairs; i += 2) {
    const unsigned a[4] = {w.halves[0][i], w.halves[1][i], w.halves[0][i + 1], w.halves[1][i + 1]};
    const unsigned b[2] = {x.halves[i], x.halves[i + 1]};
    if constexpr (kType == WeightType::BF16) {
      multiply_bf16(sums, a, b);
    } else {
      multiply_f16(sums, a, b);
    }
  }
}

// sums += the products of one chunk. A lane has the sums of outputs g and g + 8 in rows 2t and
// 2t + 1.
template <WeightType kType>
__device__ inline void multiply_chunk(float (&sums)[4], const WeightChunk<kType>& w,
                                      const RowChunk& x) {
  if constexpr (!kHasScales<kType>) {
    multiply_halves(sums, w, x);
  } else {
    float of_chunk[4] = {};
    multiply_halves(of_chunk, w, x);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      sums[i] = fmaf(w.scales[i / 2], of_chunk[i], sums[i]);
      if constexpr (kType == WeightType::Q4_1) {
        sums[i] = fmaf(w.minima[i / 2], x.totals[i % 2], sums[i]);
      }
    }
  }
}

// `from`: column 8t of a chunk of row g, in global or in shared memory.
__device__ inline void load_row(const unsigned short* from, RowChunk& x) {
  const uint4 four = *reinterpret_cast<const uint4*>(from);
  x.halves[0] = four.x, x.halves[1] = four.y, x.halves[2] = four.z, x.halves[3] = four.w;
}

__device__ inline void load_totals(const HalfRows& in, unsigned first_row, unsigned chunk,
                                   RowChunk& x) {
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned row = min(first_row + 2 * (threadIdx.x % 4) + i, in.count - 1);
    x.totals[i] = in.sums[static_cast<size_t>(row) * (in.stride / kChunk) + chunk];
  }
}

template <WeightType kType>
__device__ inline void store_scaled(const Product& product, const HalfRows& in, unsigned row,
                                    unsigned output, float sum) {
  if (row >= in.count || output >= product.weight.outputs) return;
  store_sum(product, row, output, kType == WeightType::BF16 ? sum : sum * in.powers[row]);
}

// One block per kTileOutputs outputs, and in it one warp per slice of the columns.
template <WeightType kType, unsigned kTiles>
__global__ void few_rows_kernel(Products products, HalfRows in) {
  __shared__ float sums[kSlices][kTiles * kTileRows][kTileOutputs];
  const Place place = place_of(products, blockIdx.x, kTileOutputs);
  const Product& product = products.of[place.product];
  const DeviceMatrix& weight = product.weight;
  const unsigned slice = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
  const unsigned n_chunks = weight.stride / kChunk, load = kLoadBytes<kType>;
  const unsigned outputs[2] = {min(place.first_output + g, weight.outputs - 1),
                               min(place.first_output + g + 8, weight.outputs - 1)};
  const unsigned first_row = blockIdx.y * kTiles * kTileRows;
  const unsigned char* from[2];
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    from[i] = static_cast<const unsigned char*>(weight.values) +
              static_cast<size_t>(outputs[i]) * n_chunks * 4 * load + t * load;
  }

  // The loads of kAhead chunks all start before the first chunk is used. __syncwarp prevents the
  // compiler from moving the loads down. Behind the last chunk of the slice, the last chunk is
  // loaded again and not used, because with a branch the loads would not start together.
  constexpr unsigned kAhead = kTiles == 1 ? 8 : 4;
  float of_slice[kTiles][4] = {};
  const unsigned end = slice_begin(slice + 1, n_chunks);
  for (unsigned next = slice_begin(slice, n_chunks); next < end; next += kAhead) {
    WeightChunk<kType> w[kAhead];
    RowChunk x[kAhead][kTiles];
#pragma unroll
    for (unsigned ahead = 0; ahead < kAhead; ++ahead) {
      const unsigned chunk = min(next + ahead, end - 1);
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        unpack8<kType>(from[i] + chunk * 4 * load, w[ahead].halves[i]);
        w[ahead].load_scales(weight, i, outputs[i], chunk);
      }
#pragma unroll
      for (unsigned tile = 0; tile < kTiles; ++tile) {
        const unsigned row = min(first_row + tile * kTileRows + g, in.count - 1);
        load_row(in.values + static_cast<size_t>(row) * in.stride + chunk * kChunk + t * kPerLoad,
                 x[ahead][tile]);
        if constexpr (kType == WeightType::Q4_1) {
          load_totals(in, first_row + tile * kTileRows, chunk, x[ahead][tile]);
        }
      }
    }
    __syncwarp();
#pragma unroll
    for (unsigned ahead = 0; ahead < kAhead; ++ahead) {
      if (next + ahead >= end) break;
#pragma unroll
      for (unsigned tile = 0; tile < kTiles; ++tile) {
        multiply_chunk(of_slice[tile], w[ahead], x[ahead][tile]);
      }
    }
  }
#pragma unroll
  for (unsigned tile = 0; tile < kTiles; ++tile) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      sums[slice][tile * kTileRows + 2 * t + i % 2][g + i / 2 * 8] = of_slice[tile][i];
    }
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < kTiles * kTileRows * kTileOutputs; i += kSlices * kWarp) {
    const unsigned row = i / kTileOutputs, output = i % kTileOutputs;
    float sum = 0.0f;
#pragma unroll
    for (unsigned s = 0; s < kSlices; ++s) sum += sums[s][row][output];
    store_scaled<kType>(product, in, first_row + row, place.first_output + output, sum);
  }
}

// The tiles of many_rows_kernel: of a warp, and of a block, which has 4 x 2 warps.
constexpr unsigned kWarpOutputs = 2 * kTileOutputs, kWarpRows = 4 * kTileRows;
constexpr unsigned kBlockOutputs = 4 * kWarpOutputs, kBlockRows = 2 * kWarpRows;
constexpr unsigned kBlockThreads = 8 * kWarp;
constexpr unsigned kStages = 4;

// While one chunk is multiplied, the next kStages - 1 chunks are copied to shared memory.
template <WeightType kType>
struct Stages {
  static constexpr unsigned kRowBytes = 4 * kLoadBytes<kType>;  // bytes of a row in one chunk
  static constexpr unsigned kPiece = 16;                        // bytes of one copy

  unsigned char w[kStages][kBlockOutputs][kRowBytes];
  unsigned short x[kStages][kBlockRows][kChunk];

  __device__ inline void copy(const DeviceMatrix& weight, const HalfRows& in, unsigned first_output,
                              unsigned first_row, unsigned chunk) {
    const unsigned stage = chunk % kStages, n_chunks = weight.stride / kChunk;
    constexpr unsigned kPerRow = kRowBytes / kPiece, kPerX = sizeof x[0][0] / kPiece;
    const auto* weights = static_cast<const unsigned char*>(weight.values);
    for (unsigned i = threadIdx.x; i < kBlockOutputs * kPerRow; i += kBlockThreads) {
      const unsigned row = i / kPerRow, at = i % kPerRow * kPiece;
      const unsigned output = min(first_output + row, weight.outputs - 1);
      __pipeline_memcpy_async(
          &w[stage][row][at],
          weights + (static_cast<size_t>(output) * n_chunks + chunk) * kRowBytes + at, kPiece);
    }
    for (unsigned i = threadIdx.x; i < kBlockRows * kPerX; i += kBlockThreads) {
      const unsigned row = i / kPerX, at = i % kPerX * kPerLoad;
      const unsigned source = min(first_row + row, in.count - 1);
      __pipeline_memcpy_async(
          &x[stage][row][at],
          in.values + static_cast<size_t>(source) * in.stride + chunk * kChunk + at, kPiece);
    }
  }
};

template <WeightType kType>
__global__ void __launch_bounds__(kBlockThreads) many_rows_kernel(Products products, HalfRows in) {
  __shared__ __align__(16) Stages<kType> stages;
  const Place place = place_of(products, blockIdx.x, kBlockOutputs);
  const Product& product = products.of[place.product];
  const DeviceMatrix& weight = product.weight;
  const unsigned warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
  const unsigned n_chunks = weight.stride / kChunk, load = kLoadBytes<kType>;
  const unsigned block_row = blockIdx.y * kBlockRows;
  const unsigned own_output = warp / 2 * kWarpOutputs, own_row = warp % 2 * kWarpRows;
  constexpr unsigned kAcross = kWarpOutputs / kTileOutputs, kDown = kWarpRows / kTileRows;

  for (unsigned chunk = 0; chunk < kStages - 1; ++chunk) {
    if (chunk < n_chunks) stages.copy(weight, in, place.first_output, block_row, chunk);
    __pipeline_commit();
  }
  float sums[kAcross][kDown][4] = {}, of_slice[kAcross][kDown][4] = {};
  unsigned slice = 0;
  for (unsigned chunk = 0; chunk < n_chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 2);
    __syncthreads();  // every thread can read this chunk, and has read the one that is replaced now
    if (chunk + kStages - 1 < n_chunks) {
      stages.copy(weight, in, place.first_output, block_row, chunk + kStages - 1);
    }
    __pipeline_commit();

    const unsigned stage = chunk % kStages;
    RowChunk x[kDown];
#pragma unroll
    for (unsigned j = 0; j < kDown; ++j) {
      const unsigned row = own_row + j * kTileRows;
      load_row(&stages.x[stage][row + g][t * kPerLoad], x[j]);
      if constexpr (kType == WeightType::Q4_1) load_totals(in, block_row + row, chunk, x[j]);
    }
#pragma unroll
    for (unsigned i = 0; i < kAcross; ++i) {
      WeightChunk<kType> w;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        const unsigned row = own_output + i * kTileOutputs + half * 8 + g;
        unpack8<kType>(&stages.w[stage][row][t * load], w.halves[half]);
        w.load_scales(weight, half, min(place.first_output + row, weight.outputs - 1), chunk);
      }
#pragma unroll
      for (unsigned j = 0; j < kDown; ++j) multiply_chunk(of_slice[i][j], w, x[j]);
    }

    // The slice of this chunk. A slice may be empty. After its last chunk, the slice is added.
    while (slice_begin(slice + 1, n_chunks) <= chunk) ++slice;
    if (chunk + 1 != slice_begin(slice + 1, n_chunks)) continue;
#pragma unroll
    for (unsigned i = 0; i < kAcross * kDown * 4; ++i) {
      const unsigned across = i / (kDown * 4), down = i / 4 % kDown;
      sums[across][down][i % 4] += of_slice[across][down][i % 4];
      of_slice[across][down][i % 4] = 0.0f;
    }
  }
#pragma unroll
  for (unsigned i = 0; i < kAcross * kDown * 4; ++i) {
    const unsigned across = i / (kDown * 4), down = i / 4 % kDown, n = i % 4;
    store_scaled<kType>(product, in, block_row + own_row + down * kTileRows + 2 * t + n % 2,
                        place.first_output + own_output + across * kTileOutputs + g + n / 2 * 8,
                        sums[across][down][n]);
  }
}

constexpr unsigned kRoundThreads = 256;

// One block per row.
__global__ void round_kernel(HalfRows out, Rows in) {
  __shared__ float maxima[kWarp];
  const float* from = in.values + static_cast<size_t>(blockIdx.x) * in.stride;
  float largest = 0.0f;
  for (unsigned i = threadIdx.x; i < in.width; i += kRoundThreads) {
    largest = fmaxf(largest, fabsf(from[i]));
  }
  round_row(out, blockIdx.x, from, largest, maxima);
}

template <WeightType kType>
void launch_tensor_linear(const Products& products, const HalfRows& in) {
  const auto few = [&](auto kernel, unsigned rows) {
    run_kernel(kernel,
               {{all_blocks(products, kTileOutputs), pieces(in.count, rows)}, {kSlices * kWarp}},
               products, in);
  };
  if (in.count <= kTileRows) return few(few_rows_kernel<kType, 1>, kTileRows);
  if (in.count <= 8 * kTileRows) return few(few_rows_kernel<kType, 4>, 4 * kTileRows);
  run_kernel(many_rows_kernel<kType>,
             {{all_blocks(products, kBlockOutputs), pieces(in.count, kBlockRows)}, {kBlockThreads}},
             products, in);
}

}  // namespace

void round_rows(HalfRows out, Rows in) {
  run_kernel(round_kernel, {{in.count}, {kRoundThreads}}, out, in);
}

void tensor_linear(Products products, HalfRows in) {
  with_type(products.of[0].weight.type, [&](auto type) {
    constexpr WeightType kType = decltype(type)::value;
    if constexpr (kType != WeightType::F32) launch_tensor_linear<kType>(products, in);
  });
}

}  // namespace stagecraft::cuda
