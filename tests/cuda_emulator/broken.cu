// Broken kernels. `// expect: KIND` above a kernel names the finding that the checker must report,
// and no other;
// `// <-` marks the line that it must name. Each kernel gets 256 floats (in), 256 unwritten floats
// (out) and 64 zeros (flags).
#include <mma.h>

#include "host.h"
#include "warp_matrix.h"

// expect: race
__global__ void missing_barrier(const float* in, float* out, int*) {
  __shared__ float s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  s[threadIdx.x] = in[threadIdx.x];  // <-
  out[threadIdx.x] = s[63 - threadIdx.x];
}

// expect: race
__global__ void missing_barrier_in_loop(const float* in, float* out, int*) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 32; d > 0; d /= 2)
    if (t < d) s[t] += s[t + d];  // <-
  if (t == 0) *out = s[0];
}

// expect: race
__global__ void missing_second_barrier(const float* in, float* out, int*) {
  __shared__ float tile[64];
  int t = threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 256; i += 64) {
    tile[t] = in[i + t];  // <-
    __syncthreads();
    for (int j = 0; j < 64; ++j) sum += tile[j];
  }
  out[t] = sum;
}

// expect: race
__global__ void scan_in_place_without_barrier(const float* in, float* out, int*) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    if (t >= d) s[t] += s[t - d];  // <-
    __syncthreads();
  }
  out[t] = s[t];
}

// expect: race
__global__ void warp_size_is_no_barrier(const float* in, float* out, int*) {
  __shared__ volatile float s[64];
  int t = threadIdx.x;
  s[t] = in[t];
  __syncthreads();
  if (t < 32) {
    s[t] = s[t] + s[t + 32];
    s[t] = s[t] + s[t + 16];  // <-
    s[t] = s[t] + s[t + 8];
  }
  if (t == 0) *out = s[0];
}

// expect: race
__global__ void shuffle_is_no_fence(const float* in, float* out, int*) {
  __shared__ float s[32];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = in[t];
  __shfl_sync(0xffffffffu, t, 0);
  out[t] = s[31 - t];  // <-
}

// expect: race
__global__ void syncwarp_between_warps(const float* in, float* out, int*) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[t] = 0;
  __syncthreads();
  s[t] = in[t];  // <-
  __syncwarp();
  out[t] = s[63 - t];
}

// expect: race
__global__ void all_write_the_same(const float*, float* out, int* flags) {
  flags[0] = 1;  // <-
  if (threadIdx.x == 0) *out = 1;
}

// expect: race
__global__ void shared_flag_of_all(const float* in, float* out, int*) {
  __shared__ bool any;
  if (threadIdx.x == 0) any = false;
  __syncthreads();
  if (in[threadIdx.x] > 0) any = true;  // <-
  __syncthreads();
  out[threadIdx.x] = any;
}

// expect: race
__global__ void blocks_share_a_sum(const float* in, float* out, int* flags) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, in[threadIdx.x] > 0);
  __syncthreads();
  if (threadIdx.x == 0) flags[0] += sum;  // <-
}

// expect: race
__global__ void increment_without_atomic(const float*, float*, int* flags) {
  flags[threadIdx.x % 8] += 1;  // <-
}

// expect: race
__global__ void plain_beside_atomic(const float*, float* out, int* flags) {
  atomicAdd(&flags[0], 1);
  out[threadIdx.x + blockIdx.x * 64] = flags[0];  // <-
}

// expect: race
__global__ void plain_before_own_atomic(const float*, float*, int* flags) {
  if (threadIdx.x == 0 && blockIdx.x == 0) flags[0] = 5;  // <-
  atomicAdd(&flags[0], 1);
}

// expect: race
__global__ void counter_set_without_barrier(const float*, float* out, int*) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;  // <-
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = count;
}

// expect: race
__global__ void plain_after_two_atomics(const float*, float* out, int* flags) {
  atomicAdd(&flags[0], 1);
  atomicAdd(&flags[0], 1);
  if (threadIdx.x == 63 && blockIdx.x == 1) *out = flags[0];  // <-
}

// expect: race
__global__ void plain_before_own_volatile(const float*, float* out, int* flags) {
  if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = flags[0] + *(volatile int*)flags;  // <-
  if (threadIdx.x == 32) atomicAdd(&flags[0], 1);
}

// expect: race
__global__ void last_block_without_fence(const float* in, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  out[1 + blockIdx.x] = in[blockIdx.x];
  if (atomicAdd(&flags[0], 1) != gridDim.x - 1) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += out[1 + i];  // <-
  out[0] = sum;
}

// expect: race
__global__ void fence_of_a_block_alone(const float* in, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[0] = in[0];  // <-
    __threadfence_block();
    *(volatile int*)flags = 1;
  } else {
    while (*(volatile int*)flags == 0) {
    }
    __threadfence();
    out[1] = out[0];
  }
}

// expect: race
__global__ void atomic_after_fence_of_a_block(const float* in, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  out[1 + blockIdx.x] = in[blockIdx.x];
  __threadfence_block();
  if (atomicAdd(&flags[0], 1) == gridDim.x - 1) out[0] = out[1] + out[2];  // <-
}

// expect: race
__global__ void sum_behind_the_fence(const float*, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  __threadfence();
  atomicAdd(&flags[0], 3);
  if (atomicAdd(&flags[1], 1) == gridDim.x - 1) out[0] = flags[0];  // <-
}

// expect: race
__global__ void counter_reset_by_any(const float*, float*, int* flags) {
  if (threadIdx.x != 0) return;
  __threadfence();
  atomicAdd(&flags[0], 1);
  if (blockIdx.x == 1) flags[0] = 0;  // <-
}

// expect: race
__global__ void flag_without_new_fence(const float* in, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    __threadfence();
    *(volatile int*)flags = 1;
    out[0] = in[0];
    *(volatile int*)flags = 2;
  } else {
    while (*(volatile int*)flags < 2) {
    }
    __threadfence();
    out[1] = out[0];  // <-
  }
}

// expect: race
__global__ void failed_cas_tells_nothing(const float* in, float* out, int* flags) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    out[0] = in[0];
    __threadfence();
    atomicCAS(&flags[0], 5, 6);
  } else {
    if (atomicAdd(&flags[0], 1) == 0) out[1] = out[0];  // <-
  }
}

// expect: race
__global__ void waits_with_plain_reads(const float*, float* out, int* flags) {
  if (threadIdx.x == 0) {
    __threadfence_block();
    atomicExch(&flags[0], 1);
  }
  while (flags[0] == 0) {  // <-
  }
  out[threadIdx.x] = 1;
}

// expect: race
__global__ void volatile_is_not_atomic(const float*, float*, int* flags) {
  volatile int* count = flags;
  *count = *count + 1;  // <-
}

// expect: race
__global__ void maximum_without_cas(const float* in, float*, int* flags) {
  int old = flags[0];  // <-
  if (old < in[threadIdx.x]) atomicExch(&flags[0], threadIdx.x);
}

// expect: race
__global__ void lock_without_fence(const float*, float*, int* flags) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(&flags[0], 0, 1) != 0) {
  }
  flags[1] += 1;  // <-
  atomicExch(&flags[0], 0);
}

// expect: race
__global__ void shared_atomic_of_another_block(const float* in, float* out, int*) {
  __shared__ int count;
  if (threadIdx.x != 0) return;
  count = 0;
  if (blockIdx.x == 0) out[0] = in[0];
  __threadfence();
  atomicAdd(&count, 1);
  if (blockIdx.x == 1) out[1] = out[0];  // <-
}

// expect: race
__global__ void flag_without_fence(const float* in, float* out, int*) {
  __shared__ float row[32];
  __shared__ volatile int is_full;
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) is_full = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    row[lane] = in[lane];
    __syncwarp();
    if (lane == 0) is_full = 1;  // <-
  } else {
    if (lane == 0)
      while (is_full == 0) {
      }
    __syncwarp();
    out[lane] = row[lane];
  }
}

// expect: race
__global__ void fence_before_the_data(const float* in, float* out, int*) {
  __shared__ float row[32];
  __shared__ volatile int is_full;
  int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) is_full = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    __threadfence_block();
    row[lane] = in[lane];  // <-
    __syncwarp();
    if (lane == 0) is_full = 1;
  } else {
    if (lane == 0)
      while (is_full == 0) {
      }
    __syncwarp();
    out[lane] = row[lane];
  }
}

// expect: race
__global__ void overlapping_blocks(const float* in, float* out, int*) {
  int i = blockIdx.x * 32 + threadIdx.x;
  out[i] = in[i];  // <-
}

// expect: race
__global__ void stencil_in_place(const float* in, float* out, int*) {
  float* x = const_cast<float*>(in);
  if (blockIdx.x == 0) x[threadIdx.x + 1] = 0.5f * (x[threadIdx.x] + x[threadIdx.x + 2]);  // <-
}

// expect: race
__global__ void bytes_of_one_word(const float*, float*, int* flags) {
  auto* bytes = reinterpret_cast<unsigned char*>(flags);
  bytes[threadIdx.x / 2] = threadIdx.x / 2;  // <-
}

// expect: race
__global__ void double_buffer_with_one(const float* in, float* out, int*) {
  __shared__ float s[2][64];
  int t = threadIdx.x;
  for (int i = 0; i < 4; ++i) {
    s[0][t] = in[i * 64 + t];  // <-
    __syncthreads();
    if (t == 0) out[i] = s[0][63];
  }
}

// expect: race
__global__ void async_without_wait(const float* in, float* out, int*) {
  __shared__ float s[64];
  s[threadIdx.x] = 0;
  __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // <-
}

// expect: race
__global__ void async_waits_for_too_little(const float* in, float* out, int*) {
  __shared__ float s[2][64];
  s[0][threadIdx.x] = s[1][threadIdx.x] = 0;
  for (int i = 0; i < 2; ++i) {
    __pipeline_memcpy_async(&s[i][threadIdx.x], &in[i * 64 + threadIdx.x], 4);
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  out[threadIdx.x] = s[0][threadIdx.x] + s[1][threadIdx.x];  // <-
}

// expect: race
__global__ void async_without_barrier(const float* in, float* out, int*) {
  __shared__ float s[64];
  s[threadIdx.x] = 0;
  __syncthreads();
  __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);  // <-
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = s[63 - threadIdx.x];
}

// expect: race
__global__ void reads_before_other_warp(const float* in, float* out, int*) {
  __shared__ float total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (threadIdx.x == 32) total = in[0];
  out[threadIdx.x] = total;  // <-
}

// expect: race
__global__ void exchange_in_memory(const float* in, float* out, int* flags) {
  int t = threadIdx.x;
  if (blockIdx.x > 0) return;
  flags[t] = t;
  int partner = flags[t ^ 1];  // <-
  out[t] = partner;
}

// expect: out of bounds
__global__ void off_by_one_bound(const float* in, float* out, int*) {
  int i = blockIdx.x * 64 + threadIdx.x;
  if (i <= 64) out[192 + i] = in[i];  // <-
}

// expect: out of bounds
__global__ void no_bound(const float* in, float* out, int*) {
  int i = blockIdx.x * 64 + threadIdx.x;
  out[4 * i] = in[i];  // <-
}

// expect: out of bounds
__global__ void negative_index(const float* in, float* out, int*) {
  int i = static_cast<int>(threadIdx.x) - 1;
  out[threadIdx.x + 64 * blockIdx.x] = in[i];  // <-
}

// expect: out of bounds
__global__ void shared_off_by_one(const float* in, float* out, int*) {
  __shared__ float s[64];
  __shared__ float neighbour[64];
  neighbour[threadIdx.x] = 0;
  s[threadIdx.x + 1] = in[threadIdx.x];  // <-
  __syncthreads();
  if (threadIdx.x == 0) *out = s[1] + neighbour[0];
}

__device__ void fill(float* s, int index) { s[index] = 1; }
// expect: out of bounds
__global__ void shared_through_a_pointer(const float*, float* out, int*) {
  __shared__ float s[64];
  __shared__ float neighbour[64];
  neighbour[threadIdx.x] = 0;
  fill(s, threadIdx.x + 2);
  __syncthreads();
  out[threadIdx.x] = s[0] + neighbour[0];
}

// expect: out of bounds
__global__ void row_of_a_tile(const float*, float* out, int*) {
  __shared__ float tile[8][8];
  tile[threadIdx.x % 8][8] = 0;  // <-
  *out = tile[0][0];
}

// expect: out of bounds
__global__ void dynamic_too_small(const float* in, float* out, int*) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x] = in[threadIdx.x];  // <-
  __syncthreads();
  out[threadIdx.x] = dynamic[0];
}

// expect: out of bounds
__global__ void local_array(const float* in, float* out, int*) {
  float mine[4];
  for (int i = 0; i <= 4; ++i) mine[i] = in[i];  // <-
  out[threadIdx.x + 64 * blockIdx.x] = mine[threadIdx.x % 4];
}

// expect: out of bounds
__global__ void vector_over_the_end(const float* in, float* out, int*) {
  const float* shifted = in + 4 * blockIdx.x;
  float4 v = reinterpret_cast<const float4*>(shifted)[threadIdx.x];  // <-
  if (blockIdx.x == 0) out[threadIdx.x] = v.x;
}

// expect: out of bounds
__global__ void null_pointer(const float*, float*, int* flags) {
  int* nothing = flags[0] == 0 ? nullptr : flags;
  nothing[threadIdx.x] = 1;  // <-
}

// expect: out of bounds
__global__ void bytes_for_elements(const float* in, float* out, int*) {
  out[(threadIdx.x + 1) * sizeof(float)] = in[threadIdx.x];  // <-
}

// expect: out of bounds
__global__ void another_threads_stack(const float*, float* out, int*) {
  __shared__ float* pointer;
  float mine = 3;
  if (threadIdx.x == 0) pointer = &mine;
  __syncthreads();
  out[threadIdx.x] = *pointer;  // <-
}

__device__ float element(const float* values, int index) { return values[index]; }
__device__ static const float table[4] = {1, 2, 3, 4}, table_behind[4] = {5, 6, 7, 8};
// expect: out of bounds
__global__ void behind_a_table(const float*, float* out, int*) {
  out[threadIdx.x] = table_behind[0] + element(table, threadIdx.x + 1);
}

__device__ float variable[4], variable_behind[4];
// expect: out of bounds
__global__ void behind_a_variable(const float*, float*, int*) {
  if (threadIdx.x == 0) fill(variable_behind, 0);
  fill(variable, threadIdx.x);
}

// expect: out of bounds
__global__ void writes_a_table(const float*, float*, int*) { fill(const_cast<float*>(table), 0); }

// expect: out of bounds
__global__ void writes_text(const float*, float*, int*) {
  const_cast<char*>("text")[0] = 'T';  // <-
}

// expect: out of bounds
__global__ void copy_too_long(const float* in, float* out, int*) {
  if (threadIdx.x + blockIdx.x == 0) memcpy(out, in, 257 * sizeof(float));  // <-
}

// expect: unwritten
__global__ void shared_never_written(const float*, float* out, int*) {
  __shared__ float s[64];
  if (threadIdx.x < 63) s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];  // <-
}

// expect: unwritten
__global__ void output_accumulated(const float* in, float* out, int*) {
  out[blockIdx.x * 64 + threadIdx.x] += in[threadIdx.x];  // <-
}

// expect: unwritten
__global__ void atomic_on_unwritten(const float* in, float* out, int*) {
  atomicAdd(&out[0], in[threadIdx.x]);  // <-
}

// expect: unwritten
__global__ void edge_of_a_tile(const float* in, float* out, int*) {
  __shared__ float tile[66];
  tile[threadIdx.x + 1] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x] + tile[threadIdx.x + 2];  // <-
}

// expect: unwritten
__global__ void shared_does_not_last(const float* in, float* out, int*) {
  __shared__ float s[64];
  if (blockIdx.x == 0) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 64 + threadIdx.x] = s[threadIdx.x];  // <-
}

// expect: divergent barrier
__global__ void barrier_in_branch(const float* in, float* out, int*) {
  __shared__ float s[64];
  if (threadIdx.x < 32) {
    s[threadIdx.x] = in[threadIdx.x];
    __syncthreads();  // <-
  } else {
    s[threadIdx.x] = 0;
    __syncthreads();
  }
  out[threadIdx.x] = s[63 - threadIdx.x];
}

// expect: divergent barrier
__global__ void barrier_skipped(const float* in, float* out, int*) {
  __shared__ float s[64];
  s[threadIdx.x] = in[threadIdx.x];
  if (threadIdx.x < 48) __syncthreads();  // <-
  out[threadIdx.x] = s[threadIdx.x];
  __syncthreads();
}

__device__ void meet() { __syncthreads(); }
// expect: divergent barrier
__global__ void same_barrier_other_caller(const float*, float*, int*) {
  if (threadIdx.x % 2 == 0)
    meet();
  else
    meet();
}

// expect: divergent barrier
__global__ void trip_counts_differ(const float*, float*, int*) {
  for (int i = 0; i <= threadIdx.x / 32; ++i) __syncthreads();  // <-
  __syncthreads();
}

// expect: divergent barrier
__global__ void vote_beside_barrier(const float*, float* out, int*) {
  if (threadIdx.x < 32)
    out[threadIdx.x] = __syncthreads_or(1);  // <-
  else
    __syncthreads();
}

// expect: deadlock
__global__ void shuffle_beside_barrier(const float*, float* out, int*) {
  if (threadIdx.x % 32 < 16)
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);  // <-
  else
    __syncthreads();
}

// expect: deadlock
__global__ void masks_differ(const float*, float* out, int*) {
  unsigned mask = threadIdx.x % 32 < 16 ? 0xffffffffu : 0xffff0000u;
  out[threadIdx.x] = __shfl_sync(mask, 1.0f, 20);  // <-
  __syncwarp();
}

// expect: deadlock
__global__ void flag_that_nobody_sets(const float*, float*, int* flags) {
  if (threadIdx.x == 0)
    while (*(volatile int*)flags == 0) {  // <-
    }
  __syncthreads();
}

// expect: deadlock
__global__ void lock_within_a_warp(const float*, float*, int* flags) {
  if (blockIdx.x > 0) return;
  while (atomicCAS(&flags[0], 0, 1) != 0) {
  }
  __syncwarp();  // <-
  atomicExch(&flags[0], 0);
}

// expect: inactive lane
__global__ void shuffle_from_unnamed_lane(const float*, float* out, int*) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_down_sync(0x0000ffffu, 1.0f, 8);  // <-
}

// expect: inactive lane
__global__ void shuffle_from_ended_lane(const float*, float* out, int*) {
  if (threadIdx.x >= 24) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 16);  // <-
}

// expect: inactive lane
__global__ void not_in_own_mask(const float*, float* out, int*) {
  out[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.0f, 0);  // <-
}

// expect: misaligned
__global__ void float4_at_odd_place(const float* in, float* out, int*) {
  float4 v = *reinterpret_cast<const float4*>(in + threadIdx.x);  // <-
  out[threadIdx.x] = v.x;
}

// expect: misaligned
__global__ void float2_in_shared(const float* in, float* out, int*) {
  __shared__ float s[66];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) *reinterpret_cast<float2*>(s + 1) = make_float2(0, 0);  // <-
  __syncthreads();
  out[threadIdx.x] = s[0];
}

__device__ float first(float4 v) { return v.x; }
// expect: misaligned
__global__ void float4_to_a_function(const float* in, float* out, int*) {
  out[threadIdx.x] = first(*reinterpret_cast<const float4*>(in + threadIdx.x));  // <-
}

// expect: misaligned
__global__ void async_of_16_bytes(const float* in, float* out, int*) {
  __shared__ __align__(16) float s[128];
  __pipeline_memcpy_async(&s[4 * threadIdx.x % 64], &in[1], 16);  // <-
  *out = s[0];
}

// ---- fragments: in and out as tiles of 16 x 16 numbers

namespace wmma = nvcuda::wmma;
using Sums = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;
using Halves = wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major>;
using HalvesByColumns = wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major>;

// expect: inactive lane
__global__ void fragment_of_half_a_warp(const float* in, float* out, int*) {
  Sums sums;
  if (threadIdx.x < 16) {
    wmma::load_matrix_sync(sums, in, 16, wmma::mem_row_major);  // <-
    wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
  }
}

// expect: fragment
__global__ void fragment_from_two_branches(const float* in, float* out, int*) {
  Sums sums;
  if (threadIdx.x < 16)
    wmma::load_matrix_sync(sums, in, 16, wmma::mem_row_major);
  else
    wmma::load_matrix_sync(sums, in, 16, wmma::mem_row_major);  // <-
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: fragment
__global__ void fragment_per_lane(const float* in, float* out, int*) {
  Sums sums;
  wmma::load_matrix_sync(sums, in + 8 * (threadIdx.x % 2), 16, wmma::mem_row_major);  // <-
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: fragment
__global__ void fragment_with_a_stride_of_18(const float* in, float* out, int*) {
  Sums sums;
  wmma::fill_fragment(sums, in[0]);
  wmma::store_matrix_sync(out, sums, 18, wmma::mem_row_major);  // <-
}

// expect: misaligned
__global__ void fragment_at_an_odd_place(const float* in, float* out, int*) {
  Sums sums;
  wmma::load_matrix_sync(sums, in + 4, 12, wmma::mem_row_major);  // <-
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: out of bounds
__global__ void fragment_over_the_end(const float* in, float* out, int*) {
  Sums sums;
  wmma::load_matrix_sync(sums, in + 64, 16, wmma::mem_row_major);  // <-
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: unwritten
__global__ void fragment_with_a_gap(const float* in, float* out, int*) {
  __shared__ __align__(32) __half tile[256];
  for (int i = threadIdx.x; i < 256; i += 32)
    if (i != 37) tile[i] = __float2half(in[i]);
  __syncwarp();
  Halves a;
  HalvesByColumns b;
  Sums sums;
  wmma::load_matrix_sync(a, tile, 16);  // <-
  wmma::load_matrix_sync(b, tile, 16);
  wmma::fill_fragment(sums, 0.0f);
  wmma::mma_sync(sums, a, b, sums);
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: race
__global__ void fragment_without_a_barrier(const float* in, float* out, int*) {
  __shared__ __align__(32) float tile[256];
  for (int i = threadIdx.x; i < 256; i += 32) tile[i] = in[i];
  Sums sums;
  wmma::load_matrix_sync(sums, tile, 16, wmma::mem_row_major);  // <-
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);
}

// expect: race
__global__ void fragment_stored_by_two_warps(const float* in, float* out, int*) {
  Sums sums;
  wmma::load_matrix_sync(sums, in, 16, wmma::mem_row_major);
  wmma::store_matrix_sync(out, sums, 16, wmma::mem_row_major);  // <-
}

// expect: inactive lane
__global__ void product_without_lane_31(const float* in, float* out, int*) {
  Halves a;
  HalvesByColumns b;
  Sums sums;
  wmma::fill_fragment(a, __float2half(in[0]));
  wmma::fill_fragment(b, __float2half(in[1]));
  wmma::fill_fragment(sums, 0.0f);
  if (threadIdx.x % 32 == 31) return;
  wmma::mma_sync(sums, a, b, sums);  // <-
  *out = sums.x[0];
}

// expect: inactive lane
__global__ void registers_without_lane_31(const float* in, float* out, int*) {
  const unsigned a[4] = {}, b[2] = {};
  float sums[4] = {in[0]};
  if (threadIdx.x % 32 == 31) return;
  multiply_f16(sums, a, b);  // <-
  *out = sums[0];
}

// expect: fragment
__global__ void registers_beside_fragments(const float* in, float* out, int*) {
  Halves a;
  HalvesByColumns b;
  Sums sums;
  const unsigned registers[4] = {}, others[2] = {};
  float own[4] = {};
  wmma::fill_fragment(a, __float2half(in[0]));
  wmma::fill_fragment(b, __float2half(in[1]));
  wmma::fill_fragment(sums, 0.0f);
  if (threadIdx.x % 2 == 0)
    wmma::mma_sync(sums, a, b, sums);
  else
    multiply_f16(own, registers, others);  // <-
  out[threadIdx.x] = sums.x[0] + own[0];
}

// ---- launches

using Kernel = void (*)(const float*, float*, int*);

void launch(Kernel kernel, int blocks, int threads, size_t shared = 0) {
  Buffer<float> in(numbers(256)), out(256);
  Buffer<int> flags(std::vector<int>(64));
  cuda_launch(kernel, {dim3(blocks), dim3(threads), shared}, in.data, out.data, flags.data);
}

int main() {
  for (Kernel kernel : {missing_barrier,
                        missing_barrier_in_loop,
                        missing_second_barrier,
                        scan_in_place_without_barrier,
                        warp_size_is_no_barrier,
                        syncwarp_between_warps,
                        all_write_the_same,
                        shared_flag_of_all,
                        increment_without_atomic,
                        stencil_in_place,
                        bytes_of_one_word,
                        double_buffer_with_one,
                        flag_without_fence,
                        fence_before_the_data,
                        async_without_wait,
                        async_waits_for_too_little,
                        async_without_barrier,
                        reads_before_other_warp,
                        exchange_in_memory,
                        shared_off_by_one,
                        shared_through_a_pointer,
                        row_of_a_tile,
                        null_pointer,
                        bytes_for_elements,
                        another_threads_stack,
                        shared_never_written,
                        edge_of_a_tile,
                        barrier_in_branch,
                        barrier_skipped,
                        same_barrier_other_caller,
                        trip_counts_differ,
                        vote_beside_barrier,
                        shuffle_beside_barrier,
                        flag_that_nobody_sets,
                        float4_at_odd_place,
                        float2_in_shared,
                        float4_to_a_function,
                        async_of_16_bytes,
                        copy_too_long,
                        behind_a_table,
                        behind_a_variable,
                        writes_a_table,
                        writes_text,
                        fragment_stored_by_two_warps})
    launch(kernel, 1, 64);
  for (Kernel kernel : {blocks_share_a_sum,
                        plain_beside_atomic,
                        plain_before_own_atomic,
                        counter_set_without_barrier,
                        plain_after_two_atomics,
                        plain_before_own_volatile,
                        fence_of_a_block_alone,
                        atomic_after_fence_of_a_block,
                        sum_behind_the_fence,
                        counter_reset_by_any,
                        flag_without_new_fence,
                        failed_cas_tells_nothing,
                        waits_with_plain_reads,
                        volatile_is_not_atomic,
                        maximum_without_cas,
                        last_block_without_fence,
                        lock_without_fence,
                        shared_atomic_of_another_block,
                        overlapping_blocks,
                        off_by_one_bound,
                        no_bound,
                        negative_index,
                        local_array,
                        vector_over_the_end,
                        output_accumulated,
                        atomic_on_unwritten,
                        shared_does_not_last})
    launch(kernel, 2, 64);
  for (Kernel kernel :
       {shuffle_is_no_fence, masks_differ, lock_within_a_warp, shuffle_from_unnamed_lane,
        shuffle_from_ended_lane, not_in_own_mask, fragment_of_half_a_warp,
        fragment_from_two_branches, fragment_per_lane, fragment_with_a_stride_of_18,
        fragment_at_an_odd_place, fragment_over_the_end, fragment_with_a_gap,
        fragment_without_a_barrier, product_without_lane_31, registers_without_lane_31,
        registers_beside_fragments})
    launch(kernel, 1, 32);
  launch(dynamic_too_small, 1, 64, 128);
}
