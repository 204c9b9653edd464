// Copies rows of a table, and rows of activations, by index.
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128;

// One thread per eight columns.
template <WeightType kType>
__global__ void embed_kernel(Rows out, DeviceMatrix table, const int* index, float scale,
                             bool add) {
  const unsigned column = (blockIdx.x * kThreads + threadIdx.x) * kPerLoad;
  if (column >= out.width) return;
  const unsigned t = blockIdx.y;
  float values[kPerLoad];
  load8<kType>(table, static_cast<unsigned>(index[t]), column, values);
  float* to = out.values + static_cast<size_t>(t) * out.stride + column;
  for (unsigned i = 0; i < kPerLoad && column + i < out.width; ++i) {
    to[i] = add ? to[i] + scale * values[i] : scale * values[i];
  }
}

__global__ void gather_kernel(Rows out, Rows in, const int* index) {
  const unsigned column = blockIdx.x * kThreads + threadIdx.x;
  if (column >= out.width) return;
  const size_t t = blockIdx.y, from = static_cast<size_t>(index[t]);
  out.values[t * out.stride + column] = in.values[from * in.stride + column];
}

}  // namespace

void embed(Rows out, DeviceMatrix table, const int* index, float scale, bool add) {
  const LaunchShape shape{{pieces(pieces(out.width, kPerLoad), kThreads), out.count}, {kThreads}};
  const auto launch = [&](auto kernel) {
    run_kernel(kernel, shape, out, table, index, scale, add);
  };
  with_type(table.type, [&](auto type) { launch(embed_kernel<decltype(type)::value>); });
}

void gather(Rows out, Rows in, const int* index) {
  run_kernel(gather_kernel, {{pieces(out.width, kThreads), out.count}, {kThreads}}, out, in, index);
}

}  // namespace stagecraft::cuda
