// Mixture of experts: chooses the experts of each row, and adds up their results. One warp chooses
// for a row; one thread adds up one number of the result.
#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"
#include "operators/route.h"

namespace stagecraft::cuda {
namespace {

__device__ inline void softmax(float* x, unsigned n) {
  const unsigned lane = threadIdx.x;
  float max = -INFINITY, sum = 0.0f;
  for (unsigned e = lane; e < n; e += kWarp) max = fmaxf(max, x[e]);
  max = warp_max(max);
  for (unsigned e = lane; e < n; e += kWarp) sum += expf(x[e] - max);
  sum = warp_sum(sum);
  for (unsigned e = lane; e < n; e += kWarp) x[e] = expf(x[e] - max) / sum;
}

// Whether expert a is chosen before expert b. NaN comes first, so that the result shows it.
__device__ inline bool comes_before(const float* x, unsigned a, unsigned b) {
  const bool no_number = x[a] != x[a];
  if (no_number != (x[b] != x[b])) return no_number;
  if (!no_number && x[a] != x[b]) return x[a] > x[b];
  return a < b;
}

// Sets the scores of all experts in groups that are not chosen to -infinity. One lane per group.
// The score of a group is the sum of its n_counted largest scores.
__device__ inline void close_groups(float* scores, unsigned n, const RouteOptions& options) {
  __shared__ float group_scores[kMaxGroups];
  const unsigned size = n / options.n_groups;
  for (unsigned g = threadIdx.x; g < options.n_groups; g += kWarp) {
    const float* group = scores + g * size;
    group_scores[g] = 0.0f;
    for (unsigned e = 0; e < size; ++e) {
      unsigned before = 0;
      for (unsigned other = 0; other < size; ++other) before += comes_before(group, other, e);
      if (before < options.n_counted) group_scores[g] += group[e];
    }
  }
  __syncwarp();
  for (unsigned g = threadIdx.x; g < options.n_groups; g += kWarp) {
    unsigned before = 0;
    for (unsigned other = 0; other < options.n_groups; ++other) {
      before += comes_before(group_scores, other, g);
    }
    if (before < options.n_chosen_groups) continue;
    for (unsigned e = g * size; e < (g + 1) * size; ++e) scores[e] = -INFINITY;
  }
  __syncwarp();
}

// An expert is chosen if fewer than n_chosen experts come before it. Each lane decides this for its
// own experts: bit i of `chosen` says whether expert lane + 32 i is chosen.
__global__ void route_kernel(Rows rows, RouteOptions options) {
  __shared__ float scores[kMaxExperts];  // weight + bias: the largest are chosen
  float* x = rows.values + static_cast<size_t>(blockIdx.x) * rows.stride;
  const unsigned lane = threadIdx.x, n = rows.width;
  if (options.sigmoid) {
    for (unsigned e = lane; e < n; e += kWarp) x[e] = 1.0f / (1.0f + expf(-x[e]));
  } else {
    softmax(x, n);
  }
  for (unsigned e = lane; e < n; e += kWarp) {
    scores[e] = options.bias == nullptr ? x[e] : x[e] + options.bias[e];
  }
  __syncwarp();  // the lanes read each other's scores
  if (options.n_chosen_groups != options.n_groups) close_groups(scores, n, options);
  unsigned chosen = 0;
  float sum = 0.0f;
  for (unsigned e = lane; e < n; e += kWarp) {
    unsigned before = 0;
    for (unsigned other = 0; other < n; ++other) before += comes_before(scores, other, e);
    if (before >= options.n_chosen) continue;
    chosen |= 1u << e / kWarp;
    if (isnan(scores[e])) x[e] = scores[e];  // the bias is NaN: the result must show it
    sum += x[e];
  }
  sum = options.normed ? warp_sum(sum) : 1.0f;
  for (unsigned e = lane; e < n; e += kWarp) {
    const bool is_chosen = chosen >> e / kWarp & 1;
    if (!is_chosen) x[e] = 0.0f;
    if (x[e] != 0.0f)
      x[e] = x[e] / sum * options.scale;  // if all routing weights are 0, so is the sum
  }
}

// 32 experts at a time: each lane votes whether its expert is chosen. The number of votes of the
// lanes before it is the place of its expert in the list.
__global__ void list_experts_kernel(Rows routing_weights, unsigned per_row, int* chosen) {
  const float* weight =
      routing_weights.values + static_cast<size_t>(blockIdx.x) * routing_weights.stride;
  int* to = chosen + static_cast<size_t>(blockIdx.x) * per_row;
  const unsigned lane = threadIdx.x;
  unsigned count = 0;
  for (unsigned first = 0; first < routing_weights.width; first += kWarp) {
    const unsigned e = first + lane;
    const bool is_chosen = e < routing_weights.width && weight[e] != 0.0f;
    const unsigned votes = __ballot_sync(kAllLanes, is_chosen);
    const unsigned place = count + static_cast<unsigned>(__popc(votes & ((1u << lane) - 1)));
    if (is_chosen && place < per_row) to[place] = static_cast<int>(e);
    count += static_cast<unsigned>(__popc(votes));
  }
  for (unsigned i = count + lane; i < per_row; i += kWarp) to[i] = -1;
}

constexpr unsigned kThreads = 128;

__global__ void combine_kernel(Rows out, Rows in, Rows routing_weights, unsigned per_row,
                               const int* chosen) {
  const unsigned column = blockIdx.x * kThreads + threadIdx.x, t = blockIdx.y;
  if (column >= out.width) return;
  float sum = 0.0f;
  for (size_t i = t * per_row; i < (t + 1) * per_row && chosen[i] >= 0; ++i) {
    const float weight =
        routing_weights.values[static_cast<size_t>(t) * routing_weights.stride + chosen[i]];
    sum = fmaf(weight, in.values[i * in.stride + column], sum);
  }
  out.values[static_cast<size_t>(t) * out.stride + column] = sum;
}

}  // namespace

void route(Rows x, RouteOptions options) {
  run_kernel(route_kernel, {{x.count}, {kWarp}}, x, options);
}

void list_experts(Rows routing_weights, unsigned per_row, int* chosen) {
  run_kernel(list_experts_kernel, {{routing_weights.count}, {kWarp}}, routing_weights, per_row,
             chosen);
}

void combine_experts(Rows out, Rows in, Rows routing_weights, unsigned per_row, const int* chosen) {
  run_kernel(combine_kernel, {{pieces(out.width, kThreads), out.count}, {kThreads}}, out, in,
             routing_weights, per_row, chosen);
}

}  // namespace stagecraft::cuda
