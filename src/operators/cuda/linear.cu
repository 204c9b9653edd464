// Products with weights: a plain one, one with tensor cores, and one in which each row has the
// weights of its expert.
#include <mma.h>

#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kWarps = 4;     // per block, an output each
constexpr unsigned kTileRows = 4;  // rows that share one reading of a weight

// sums[r] = weight[output] . x[r]: every lane multiplies its numbers, eight at a time, and the warp
// adds up. A weight is read once for all rows. In what order a row is summed depends neither on
// kRows nor on the other rows.
template <WeightType kType, unsigned kRows>
__device__ inline void dot_rows(const DeviceMatrix& weight, unsigned output,
                                const float* const (&x)[kRows], float (&sums)[kRows]) {
  for (unsigned r = 0; r < kRows; ++r) sums[r] = 0.0f;
  for (unsigned column = threadIdx.x % kWarp * kPerLoad; column < weight.stride;
       column += kWarp * kPerLoad) {
    float w[kPerLoad];
    load8<kType>(weight, output, column, w);
#pragma unroll
    for (unsigned r = 0; r < kRows; ++r) {
      float values[kPerLoad];
      load8(x[r] + column, values);
#pragma unroll
      for (unsigned i = 0; i < kPerLoad; ++i) sums[r] = fmaf(w[i], values[i], sums[r]);
    }
  }
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) sums[r] = warp_sum(sums[r]);
}

// A warp per output and tile of rows.
template <WeightType kType, unsigned kRows>
__global__ void linear_kernel(Rows out, Rows in, DeviceMatrix weight, const float* bias) {
  const unsigned output = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (output >= weight.outputs) return;
  const unsigned first = blockIdx.y * kRows;
  const float* x[kRows];
  float sums[kRows];
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {  // behind the last row: the last row again, not stored
    x[r] = in.values + static_cast<size_t>(min(first + r, in.count - 1)) * in.stride;
  }
  dot_rows<kType>(weight, output, x, sums);
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    if (first + r >= out.count) break;
    out.values[static_cast<size_t>(first + r) * out.stride + output] =
        bias == nullptr ? sums[r] : sums[r] + bias[output];
  }
}

// The numbers that tensor cores multiply. bf16 has the exponents of f32. f16 has not: a row is first
// divided by a power of two, so that all its numbers are below 2.
template <WeightType kType>
struct TensorType;
template <>
struct TensorType<WeightType::BF16> {
  using Number = __nv_bfloat16;
  static constexpr bool is_scaled = false;
  __device__ static inline Number round(float value) { return __float2bfloat16(value); }
};
template <>
struct TensorType<WeightType::F16> {
  using Number = __half;
  static constexpr bool is_scaled = true;
  __device__ static inline Number round(float value) { return __float2half_rn(value); }
};

// The power of two at or below the largest number of a row, and 1 where that is 0, infinite, NaN or
// so large or small that its inverse is no normal number. Every lane gets it.
__device__ inline float power_below(const float* row, unsigned width) {
  float largest = 0.0f;
  for (unsigned i = threadIdx.x % kWarp; i < width; i += kWarp) {
    largest = fmaxf(largest, fabsf(row[i]));
  }
  const unsigned exponent = __float_as_uint(warp_max(largest)) >> 23;
  return exponent > 0 && exponent < 254 ? __uint_as_float(exponent << 23) : 1.0f;
}

// A block computes kTensorSide outputs of kTiles tiles of rows. Its warps take turns along the
// columns, and their sums are added in the order of the warps. So the order in which a row is summed
// depends on the width alone, and the tile of a row has no part in that of another.
template <WeightType kType, unsigned kTiles>
__global__ void tensor_linear_kernel(Rows out, Rows in, DeviceMatrix weight, const float* bias) {
  using Type = TensorType<kType>;
  using Number = typename Type::Number;
  constexpr unsigned kSide = kTensorSide, kTile = kSide * kSide, kRows = kTiles * kSide;
  __shared__ __align__(32) Number x[kWarps][kTiles * kTile];
  __shared__ __align__(32) float sums[kWarps][kTiles * kTile];
  __shared__ float powers[kRows];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  // The last block computes some outputs of the one before it again, and does not store them.
  const unsigned own_output = blockIdx.x * kSide;
  const unsigned first_output = min(own_output, weight.outputs - kSide);
  const unsigned first_row = blockIdx.y * kRows, n_rows = min(kRows, in.count - first_row);
  const float* rows = in.values + static_cast<size_t>(first_row) * in.stride;
  if constexpr (Type::is_scaled) {
    for (unsigned row = warp; row < n_rows; row += kWarps) {
      const float power = power_below(rows + static_cast<size_t>(row) * in.stride, in.width);
      if (lane == 0) powers[row] = power;
    }
    __syncthreads();
  }

  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::accumulator, kSide, kSide, kSide, float> products[kTiles];
#pragma unroll
  for (unsigned t = 0; t < kTiles; ++t) wmma::fill_fragment(products[t], 0.0f);
  const Number* weights = static_cast<const Number*>(weight.values) +
                          static_cast<size_t>(first_output) * weight.stride;
  for (unsigned column = warp * kSide; column < weight.stride; column += kWarps * kSide) {
    for (unsigned i = lane; i < kTiles * kTile / 4; i += kWarp) {
      const unsigned row = i / (kSide / 4), place = i % (kSide / 4) * 4;
      float4 four = {0.0f, 0.0f, 0.0f, 0.0f};
      float scale = 1.0f;
      if (row < n_rows) {
        four = *reinterpret_cast<const float4*>(rows + static_cast<size_t>(row) * in.stride +
                                                column + place);
        if constexpr (Type::is_scaled) scale = 1.0f / powers[row];
      }
      Number* to = &x[warp][row * kSide + place];
      to[0] = Type::round(scale * four.x), to[1] = Type::round(scale * four.y);
      to[2] = Type::round(scale * four.z), to[3] = Type::round(scale * four.w);
    }
    __syncwarp();
    wmma::fragment<wmma::matrix_b, kSide, kSide, kSide, Number, wmma::col_major> w;
    wmma::load_matrix_sync(w, weights + column, weight.stride);
#pragma unroll
    for (unsigned t = 0; t < kTiles; ++t) {
      wmma::fragment<wmma::matrix_a, kSide, kSide, kSide, Number, wmma::row_major> a;
      wmma::load_matrix_sync(a, &x[warp][t * kTile], kSide);
      wmma::mma_sync(products[t], a, w, products[t]);
    }
    __syncwarp();  // before x is overwritten
  }
#pragma unroll
  for (unsigned t = 0; t < kTiles; ++t) {
    wmma::store_matrix_sync(&sums[warp][t * kTile], products[t], kSide, wmma::mem_row_major);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n_rows * kSide; i += kWarps * kWarp) {
    const unsigned row = i / kSide, output = first_output + i % kSide;
    if (output < own_output) continue;
    float sum = sums[0][i];
    for (unsigned other = 1; other < kWarps; ++other) sum += sums[other][i];
    if constexpr (Type::is_scaled) sum *= powers[row];
    out.values[static_cast<size_t>(first_row + row) * out.stride + output] =
        bias == nullptr ? sum : sum + bias[output];
  }
}

template <WeightType kType>
void launch_tensor_linear(Rows out, Rows in, const DeviceMatrix& weight, const float* bias) {
  constexpr unsigned kTiles = 4;  // for prompts: a weight is read once for 64 rows
  const unsigned across = blocks_for(weight.outputs, kTensorSide);
  if (in.count <= kTensorSide) {
    run_kernel(tensor_linear_kernel<kType, 1>, {{across}, {kWarps * kWarp}}, out, in, weight, bias);
  } else {
    run_kernel(tensor_linear_kernel<kType, kTiles>,
               {{across, blocks_for(in.count, kTiles * kTensorSide)}, {kWarps * kWarp}}, out, in,
               weight, bias);
  }
}

template <WeightType kType>
void launch_linear(Rows out, Rows in, const DeviceMatrix& weight, const float* bias) {
  if constexpr (kType == WeightType::F16 || kType == WeightType::BF16) {
    if (weight.tensor_cores) return launch_tensor_linear<kType>(out, in, weight, bias);
  }
  const unsigned blocks = blocks_for(weight.outputs, kWarps);
  if (in.count == 1) {
    run_kernel(linear_kernel<kType, 1>, {{blocks}, {kWarps * kWarp}}, out, in, weight, bias);
  } else {
    run_kernel(linear_kernel<kType, kTileRows>,
                {{blocks, blocks_for(in.count, kTileRows)}, {kWarps * kWarp}}, out, in, weight,
                bias);
  }
}

// Which expert a row goes to is known on the GPU alone, so every row has a launch's blocks for one
// expert, and looks up which. All lanes of a warp take the same case of the switch.
__global__ void expert_linear_kernel(Rows out, Rows in, DeviceExperts experts, const int* chosen,
                                     unsigned rows_per_input) {
  const unsigned output = blockIdx.x * kWarps + threadIdx.x / kWarp, row = blockIdx.y;
  const int expert = chosen[row];
  if (expert < 0 || output >= out.width) return;
  const DeviceMatrix weight = experts.matrices[expert];
  const float* const x[1] = {in.values + static_cast<size_t>(row / rows_per_input) * in.stride};
  float sum[1] = {};
  with_type(weight.type,
            [&](auto type) { dot_rows<decltype(type)::value>(weight, output, x, sum); });
  if (threadIdx.x % kWarp != 0) return;
  if (experts.biases != nullptr) sum[0] += experts.biases[expert][output];
  out.values[static_cast<size_t>(row) * out.stride + output] = sum[0];
}

// weight[output] . x, where nothing may be read behind x's weight.inputs numbers, and x begins
// anywhere.
template <WeightType kType>
__device__ inline float dot_part(const DeviceMatrix& weight, unsigned output, const float* x) {
  float sum = 0.0f;
  for (unsigned column = threadIdx.x % kWarp * kPerLoad; column < weight.inputs;
       column += kWarp * kPerLoad) {
    float w[kPerLoad];
    load8<kType>(weight, output, column, w);
    for (unsigned i = 0; i < kPerLoad && column + i < weight.inputs; ++i) {
      sum = fmaf(w[i], x[column + i], sum);
    }
  }
  return warp_sum(sum);
}

__global__ void heads_linear_kernel(Rows out, Rows in, const DeviceMatrix* heads,
                                    unsigned first_column) {
  const unsigned output = blockIdx.x * kWarps + threadIdx.x / kWarp;
  const unsigned head = blockIdx.y, row = blockIdx.z;
  const DeviceMatrix weight = heads[head];
  if (output >= weight.outputs) return;
  const float* x = in.values + static_cast<size_t>(row) * in.stride +
                   head * (in.width / gridDim.y) + first_column;
  float sum = 0.0f;
  with_type(weight.type,
            [&](auto type) { sum = dot_part<decltype(type)::value>(weight, output, x); });
  if (threadIdx.x % kWarp != 0) return;
  out.values[static_cast<size_t>(row) * out.stride + head * weight.outputs + output] = sum;
}

}  // namespace

void linear(Rows out, Rows in, DeviceMatrix weight, const float* bias) {
  with_type(weight.type,
            [&](auto type) { launch_linear<decltype(type)::value>(out, in, weight, bias); });
}

void expert_linear(Rows out, Rows in, DeviceExperts experts, const int* chosen,
                   unsigned rows_per_input) {
  run_kernel(expert_linear_kernel, {{blocks_for(out.width, kWarps), out.count}, {kWarps * kWarp}},
              out, in, experts, chosen, rows_per_input);
}

void heads_linear(Rows out, Rows in, const DeviceMatrix* heads, unsigned n_heads,
                  unsigned first_column) {
  const unsigned blocks = blocks_for(out.width / n_heads, kWarps);
  run_kernel(heads_linear_kernel, {{blocks, n_heads, out.count}, {kWarps * kWarp}}, out, in, heads,
              first_column);
}

}  // namespace stagecraft::cuda
