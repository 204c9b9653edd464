// Products with weights, in f32: linear() computes several products of the same rows in one launch;
// in expert_linear(), each row has the weights of its expert; heads_linear() has one matrix per
// head. tensor_linear.cu has the products of large models.
#include "operators/cuda/products.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kWarps = 4;     // per block; each computes one output
constexpr unsigned kTileRows = 4;  // a weight is read once for this many rows

// sums[r] = weight[output] . x[r]. Each lane multiplies its numbers, eight at a time. Then the warp
// adds up the sums of its lanes. A weight is read once for all rows. The order in which a row is
// summed does not depend on kRows or on the other rows.
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

// One warp per output and tile of rows.
template <WeightType kType, unsigned kRows>
__global__ void linear_kernel(Products products, Rows in) {
  const Place place = place_of(products, blockIdx.x, kWarps);
  const Product& product = products.of[place.product];
  const unsigned output = place.first_output + threadIdx.x / kWarp;
  if (output >= product.weight.outputs) return;
  const unsigned first = blockIdx.y * kRows;
  const float* x[kRows];
  float sums[kRows];
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {  // behind the last row: reads it again, stores nothing
    x[r] = in.values + static_cast<size_t>(min(first + r, in.count - 1)) * in.stride;
  }
  dot_rows<kType>(product.weight, output, x, sums);
  if (threadIdx.x % kWarp != 0) return;
#pragma unroll
  for (unsigned r = 0; r < kRows; ++r) {
    if (first + r < in.count) store_sum(product, first + r, output, sums[r]);
  }
}

template <WeightType kType>
void launch_linear(const Products& products, Rows in) {
  const unsigned blocks = all_blocks(products, kWarps);
  if (in.count == 1) {
    run_kernel(linear_kernel<kType, 1>, {{blocks}, {kWarps * kWarp}}, products, in);
  } else {
    run_kernel(linear_kernel<kType, kTileRows>,
               {{blocks, pieces(in.count, kTileRows)}, {kWarps * kWarp}}, products, in);
  }
}

// The host does not know which expert a row goes to. So each row has the blocks of one expert, and
// the kernel looks up which expert it is. All lanes of a warp take the same case of the switch.
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

// weight[output] . x. x may begin at any address, and nothing behind its weight.inputs numbers may
// be read. So x is read number by number.
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

void linear(Products products, Rows in) {
  with_type(products.of[0].weight.type,
            [&](auto type) { launch_linear<decltype(type)::value>(products, in); });
}

void expert_linear(Rows out, Rows in, DeviceExperts experts, const int* chosen,
                   unsigned rows_per_input) {
  run_kernel(expert_linear_kernel, {{pieces(out.width, kWarps), out.count}, {kWarps * kWarp}}, out,
             in, experts, chosen, rows_per_input);
}

void heads_linear(Rows out, Rows in, const DeviceMatrix* heads, unsigned n_heads,
                  unsigned first_column) {
  const unsigned blocks = pieces(out.width / n_heads, kWarps);
  run_kernel(heads_linear_kernel, {{blocks, n_heads, out.count}, {kWarps * kWarp}}, out, in, heads,
             first_column);
}

}  // namespace stagecraft::cuda
