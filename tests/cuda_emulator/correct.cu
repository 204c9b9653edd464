// Correct kernels, each with the host code that runs it and compares its result. The checker must find nothing.
// `//// name` begins a section: mutants.py splits the file there. main calls run_NAME.
#include "host.h"

//// reduce_tree
__global__ void reduce_tree(const float* in, float* out, int n) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < n ? in[i] : 0.0f;
  __syncthreads();
  for (int d = blockDim.x / 2; d > 0; d /= 2) {
    if (threadIdx.x < d) part[threadIdx.x] += part[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = part[0];
}
bool run_reduce_tree() {
  std::vector<float> x = numbers(700);
  Buffer<float> in(x), out(3);
  cuda_launch(reduce_tree, {3, 256}, in.data, out.data, 700);
  double sum = 0, found = 0;
  for (float v : x) sum += v;
  for (float v : out.host()) found += v;
  return near(found, sum);
}

//// reduce_last_warp
__global__ void reduce_last_warp(const float* in, float* out) {
  __shared__ float part[64];
  int t = threadIdx.x;
  part[t] = in[t];
  __syncthreads();
  if (t < 32) {
    part[t] += part[t + 32];
    __syncwarp();
    for (int d = 16; d > 0; d /= 2) {
      float other = part[t + d];
      __syncwarp();
      if (t < d) part[t] += other;
      __syncwarp();
    }
    if (t == 0) *out = part[0];
  }
}
bool run_reduce_last_warp() {
  std::vector<float> x = numbers(64);
  Buffer<float> in(x), out(1);
  cuda_launch(reduce_last_warp, {1, 64}, in.data, out.data);
  double sum = 0;
  for (float v : x) sum += v;
  return near(out.host()[0], sum);
}

//// reduce_shuffle
__global__ void reduce_shuffle(const float* in, float* out) {
  extern __shared__ float sums[];
  float sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0f;
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
  }
}
bool run_reduce_shuffle() {
  std::vector<float> x = numbers(256);
  Buffer<float> in(x), out(2);
  cuda_launch(reduce_shuffle, {2, 128, 16}, in.data, out.data);
  double sum = 0;
  for (float v : x) sum += v;
  return near(out.host()[0] + out.host()[1], sum);
}

//// scan_two_buffers
__global__ void scan_two_buffers(const int* in, int* out) {
  __shared__ int sums[2][128];
  int t = threadIdx.x, from = 0;
  sums[0][t] = in[t];
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    sums[1 - from][t] = sums[from][t] + (t >= d ? sums[from][t - d] : 0);
    from = 1 - from;
    __syncthreads();
  }
  out[t] = sums[from][t];
}
bool run_scan_two_buffers() {
  std::vector<int> x(128);
  for (int i = 0; i < 128; ++i) x[i] = i * 7 % 13 + 1;
  Buffer<int> in(x), out(128);
  cuda_launch(scan_two_buffers, {1, 128}, in.data, out.data);
  int sum = 0;
  bool right = true;
  for (int i = 0; i < 128; ++i) right &= out.host()[i] == (sum += x[i]);
  return right;
}

//// scan_in_place
__global__ void scan_in_place(int* x) {
  __shared__ int sums[64];
  int t = threadIdx.x;
  sums[t] = x[t];
  __syncthreads();
  for (int d = 1; d < 64; d *= 2) {
    int before = t >= d ? sums[t - d] : 0;
    __syncthreads();
    sums[t] += before;
    __syncthreads();
  }
  x[t] = sums[t];
}
bool run_scan_in_place() {
  std::vector<int> x(64);
  for (int i = 0; i < 64; ++i) x[i] = i * 5 % 11 + 1;
  Buffer<int> data(x);
  cuda_launch(scan_in_place, {1, 64}, data.data);
  int sum = 0;
  bool right = true;
  for (int i = 0; i < 64; ++i) right &= data.host()[i] == (sum += x[i]);
  return right;
}

//// scan_warp
__global__ void scan_warp(const int* in, int* out) {
  int t = threadIdx.x, sum = in[t];
  for (int d = 1; d < 32; d *= 2) {
    int before = __shfl_up_sync(0xffffffffu, sum, d);
    if (t % 32 >= d) sum += before;
  }
  out[t] = sum;
}
bool run_scan_warp() {
  std::vector<int> x(64, 3);
  Buffer<int> in(x), out(64);
  cuda_launch(scan_warp, {1, 64}, in.data, out.data);
  bool right = true;
  for (int i = 0; i < 64; ++i) right &= out.host()[i] == 3 * (i % 32 + 1);
  return right;
}

//// product_naive
__global__ void product_naive(const float* a, const float* b, float* c, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += a[row * k + i] * b[column * k + i];
  c[row * n + column] = sum;
}
bool run_product_naive() {
  const int m = 18, n = 40, k = 24;
  std::vector<float> x = numbers(m * k), y = numbers(n * k);
  Buffer<float> a(x), b(y), c(m * n);
  cuda_launch(product_naive, {{3, 5}, {16, 4}}, a.data, b.data, c.data, m, n, k);
  return is_product(c.host(), x, y, m, n, k);
}

//// product_tiled
__global__ void product_tiled(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float tile_a[16][17], tile_b[16][17];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * 16 + ty, column = blockIdx.x * 16 + tx, b_row = blockIdx.x * 16 + ty;
  float sum = 0;
  for (int i = 0; i < k; i += 16) {
    tile_a[ty][tx] = row < m && i + tx < k ? a[row * k + i + tx] : 0.0f;
    tile_b[ty][tx] = b_row < n && i + tx < k ? b[b_row * k + i + tx] : 0.0f;
    __syncthreads();
    for (int l = 0; l < 16; ++l) sum += tile_a[ty][l] * tile_b[tx][l];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}
bool run_product_tiled() {
  const int m = 20, n = 40, k = 24;
  std::vector<float> x = numbers(m * k), y = numbers(n * k);
  Buffer<float> a(x), b(y), c(m * n);
  cuda_launch(product_tiled, {{3, 2}, {16, 16}}, a.data, b.data, c.data, m, n, k);
  return is_product(c.host(), x, y, m, n, k);
}

//// product_async
// While one tile is used, the next one is copied.
__global__ void product_async(const float* a, const float* x, float* y, int k) {
  __shared__ __align__(16) float tile[2][32][4];
  int t = threadIdx.x, tiles = k / 4;
  float sum = 0;
  __pipeline_memcpy_async(&tile[0][t][0], &a[t * k], 16);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) __pipeline_memcpy_async(&tile[(i + 1) % 2][t][0], &a[t * k + (i + 1) * 4], 16);
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    int other = (t + 1) % 32;
    for (int l = 0; l < 4; ++l) sum += tile[i % 2][other][l] * x[i * 4 + l];
    __syncthreads();
  }
  y[(t + 1) % 32] = sum;
}
bool run_product_async() {
  const int k = 20;
  std::vector<float> matrix = numbers(32 * k), vector = numbers(k);
  Buffer<float> a(matrix), x(vector), y(32);
  cuda_launch(product_async, {1, 32}, a.data, x.data, y.data, k);
  bool right = true;
  for (int i = 0; i < 32; ++i) {
    double sum = 0;
    for (int l = 0; l < k; ++l) sum += matrix[i * k + l] * vector[l];
    right &= near(y.host()[i], sum);
  }
  return right;
}

//// transpose_padded
__global__ void transpose_padded(const float* in, float* out, int width, int height) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < width && y + i < height) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * width + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int i = 0; i < 32; i += 8)
    if (x < height && y + i < width) out[(y + i) * height + x] = tile[threadIdx.x][threadIdx.y + i];
}
bool run_transpose_padded() {
  const int width = 40, height = 50;
  std::vector<float> x = numbers(width * height);
  Buffer<float> in(x), out(width * height);
  cuda_launch(transpose_padded, {{2, 2}, {32, 8}}, in.data, out.data, width, height);
  std::vector<float> found = out.host();
  bool right = true;
  for (int i = 0; i < height; ++i)
    for (int j = 0; j < width; ++j) right &= found[j * height + i] == x[i * width + j];
  return right;
}

//// histogram
__global__ void histogram(const unsigned char* in, int n, unsigned* counts) {
  __shared__ unsigned local[16];
  if (threadIdx.x < 16) local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] % 16], 1u);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
bool run_histogram() {
  std::vector<unsigned char> x(500);
  std::vector<unsigned> expected(16);
  for (int i = 0; i < 500; ++i) x[i] = i * i % 251, ++expected[x[i] % 16];
  Buffer<unsigned char> in(x);
  Buffer<unsigned> counts(16);
  cudaMemset(counts.data, 0, 64);
  cuda_launch(histogram, {2, 64}, in.data, 500, counts.data);
  return counts.host() == expected;
}

//// last_block_reduces
__device__ unsigned blocks_done = 0;
__global__ void last_block_reduces(const float* in, float* parts, float* out) {
  __shared__ float part[64];
  __shared__ bool is_last;
  part[threadIdx.x] = in[blockIdx.x * 64 + threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 64; ++i) sum += part[i];
    parts[blockIdx.x] = sum;
    __threadfence();
    is_last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  float sum = 0;
  for (int i = threadIdx.x; i < gridDim.x; i += 32) sum += parts[i];
  if (threadIdx.x >= 32) return;
  for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffffu, sum, d);
  if (threadIdx.x == 0) *out = sum;
}
bool run_last_block_reduces() {
  std::vector<float> x = numbers(64 * 40);
  Buffer<float> in(x), parts(40), out(1);
  cuda_launch(last_block_reduces, {40, 64}, in.data, parts.data, out.data);
  double sum = 0;
  for (float v : x) sum += v;
  return near(out.host()[0], sum);
}

//// last_block_resets
// Like CUDA's sample threadFenceReduction: the last block resets the counter with a plain write.
__device__ unsigned arrivals = 0;
__global__ void last_block_resets(const float* in, float* parts, float* out) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = 2 * in[blockIdx.x];
    __threadfence();
    is_last = atomicInc(&arrivals, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 63) {
    float sum = 0;
    for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
    *out = sum;
    arrivals = 0;
  }
}
bool run_last_block_resets() {
  std::vector<float> x = numbers(10);
  Buffer<float> in(x), parts(10), out(1);
  double sum = 0;
  for (float v : x) sum += 2 * v;
  bool right = true;
  for (int i = 0; i < 2; ++i) {
    cuda_launch(last_block_resets, {10, 64}, in.data, parts.data, out.data);
    right &= near(out.host()[0], sum);
  }
  return right;
}

//// atomics_made_of_cas
// atomicAdd for double, made as in CUDA's manual; and a maximum that often needs no atomic.
__device__ void add(double* sum, double value) {
  auto* word = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long old = *word, assumed;
  do {
    assumed = old;
    old = atomicCAS(word, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (old != assumed);
}
__device__ void raise(float* most, float value) {
  int* word = reinterpret_cast<int*>(most);
  int old = *word;
  while (__int_as_float(old) < value) {
    int assumed = old;
    old = atomicCAS(word, assumed, __float_as_int(value));
    if (old == assumed) break;
  }
}
__global__ void atomics_made_of_cas(const float* in, double* sum, float* most, float* out) {
  __shared__ float most_here;
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) most_here = -1;
  __syncthreads();
  if (i % 2 == 0) add(sum, in[i]);
  if (i % 2 != 0) add(sum, -in[i]);
  raise(most, in[i]);
  raise(&most_here, in[i]);
  __syncthreads();
  if (threadIdx.x == 0) out[blockIdx.x] = most_here;
}
bool run_atomics_made_of_cas() {
  std::vector<float> x = numbers(128);
  Buffer<float> in(x), most(std::vector<float>{-1}), out(2);
  Buffer<double> sum(std::vector<double>{0});
  cuda_launch(atomics_made_of_cas, {2, 64}, in.data, sum.data, most.data, out.data);
  double added = 0;
  float expected = -1, first = -1;
  for (int i = 0; i < 128; ++i) {
    added += i % 2 == 0 ? x[i] : -x[i];
    expected = std::fmax(expected, x[i]);
    if (i < 64) first = std::fmax(first, x[i]);
  }
  return near(sum.host()[0], added) && most.host()[0] == expected && out.host()[0] == first;
}

//// waits_for_a_value
// Block b waits until the counter is b, as in split-k. The last block resets the counter.
__global__ void waits_for_a_value(const int* in, int* sums, int* turn) {
  if (threadIdx.x == 0) {
    if (blockIdx.x % 2 == 0) {
      while (*(volatile int*)turn < (int)blockIdx.x) {
      }
    } else {
      while (atomicAdd(turn, 0) != blockIdx.x) {
      }
    }
    __threadfence();
  }
  __syncthreads();
  sums[threadIdx.x] = in[threadIdx.x] - 2 * sums[threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (blockIdx.x == gridDim.x - 1)
      *turn = 0;
    else
      atomicAdd(turn, 1);
  }
}
bool run_waits_for_a_value() {
  std::vector<int> x(32), expected(32);
  for (int i = 0; i < 32; ++i) x[i] = i * 7 % 5;
  Buffer<int> in(x), sums(expected), turn(std::vector<int>{0});
  for (int launch = 0; launch < 2; ++launch) {
    cuda_launch(waits_for_a_value, {5, 32}, in.data, sums.data, turn.data);
    for (int block = 0; block < 5; ++block)
      for (int i = 0; i < 32; ++i) expected[i] = x[i] - 2 * expected[i];
  }
  return sums.host() == expected;
}

//// fences_in_two_steps
// One thread fences for its block. A thread that has seen this then fences for all blocks.
__global__ void fences_in_two_steps(int* data, int* flags, int* out) {
  if (threadIdx.x % 32 != 0) return;
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    *data = 5;
    __threadfence_block();
    *(volatile int*)&flags[0] = 1;
  } else if (blockIdx.x == 0) {
    while (*(volatile int*)&flags[0] == 0) {
    }
    __threadfence();
    *(volatile int*)&flags[1] = 1;
  } else if (threadIdx.x == 0) {
    while (*(volatile int*)&flags[1] == 0) {
    }
    __threadfence();
    *out = *data + 1;
  }
}
bool run_fences_in_two_steps() {
  Buffer<int> data(1), flags(std::vector<int>{0, 0}), out(1);
  cuda_launch(fences_in_two_steps, {2, 64}, data.data, flags.data, out.data);
  return out.host()[0] == 6;
}

//// fence_before_barrier
// Every thread writes and fences. After the barrier, one of them sets the flag for the other blocks.
__global__ void fence_before_barrier(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x + 5;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) *(volatile int*)flag = 1;
  } else {
    if (threadIdx.x == 0)
      while (*(volatile int*)flag == 0) {
      }
    __syncthreads();
    out[threadIdx.x] = data[31 - threadIdx.x];
  }
}
bool run_fence_before_barrier() {
  Buffer<int> data(32), flag(std::vector<int>{0}), out(32);
  cuda_launch(fence_before_barrier, {2, 32}, data.data, flag.data, out.data);
  bool right = true;
  for (int i = 0; i < 32; ++i) right &= out.host()[i] == 36 - i;
  return right;
}

//// warp_to_warp
// One warp passes rows to another through shared memory, with a flag and fences instead of barriers.
__global__ void warp_to_warp(const int* in, int* out, int rows) {
  __shared__ int row[32];
  __shared__ volatile bool is_full;
  if (threadIdx.x == 0) is_full = false;
  __syncthreads();
  const bool gives = threadIdx.x < 32, is_first = threadIdx.x % 32 == 0;
  for (int i = threadIdx.x % 32; i < rows * 32; i += 32) {
    if (is_first)
      while (is_full == gives) {
      }
    __threadfence_block();
    __syncwarp();
    if (gives)
      row[i % 32] = in[i];
    else
      out[i] = row[i % 32] + 1;
    __syncwarp();
    if (is_first) {
      __threadfence_block();
      is_full = gives;
    }
  }
}
bool run_warp_to_warp() {
  std::vector<int> numbers(96);
  for (int i = 0; i < 96; ++i) numbers[i] = i;
  Buffer<int> in(numbers), out(96);
  cuda_launch(warp_to_warp, {1, 64}, in.data, out.data, 3);
  bool right = true;
  for (int i = 0; i < 96; ++i) right &= out.host()[i] == i + 1;
  return right;
}

//// grid_barrier
// All blocks must be resident at the same time.
__device__ void wait_for_all_blocks(int* arrived, int expected) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < expected) {
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void grid_barrier(float* x, float* y, int* arrived) {
  __shared__ float mine[32];
  int i = blockIdx.x * 32 + threadIdx.x, n = gridDim.x * 32;
  mine[threadIdx.x] = x[i];
  wait_for_all_blocks(arrived, gridDim.x);
  y[i] = mine[threadIdx.x] + x[n - 1 - i];
  wait_for_all_blocks(arrived, 2 * gridDim.x);
  x[i] = y[(i + 32) % n];
}
bool run_grid_barrier() {
  std::vector<float> start = numbers(128);
  Buffer<float> x(start), y(128);
  Buffer<int> arrived(std::vector<int>{0});
  cuda_launch(grid_barrier, {4, 32}, x.data, y.data, arrived.data);
  bool right = true;
  for (int i = 0; i < 128; ++i) {
    int j = (i + 32) % 128;
    right &= x.host()[i] == start[j] + start[127 - j];
  }
  return right;
}

//// spin_lock
__global__ void spin_lock(int* lock, int* value) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *value += blockIdx.x + 1;
  __threadfence();
  atomicExch(lock, 0);
}
bool run_spin_lock() {
  Buffer<int> lock(std::vector<int>{0}), value(std::vector<int>{0});
  cuda_launch(spin_lock, {8, 32}, lock.data, value.data);
  return value.host()[0] == 36;
}

//// vector_copy
__global__ void vector_copy(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 v = reinterpret_cast<const float4*>(in)[i];
    v.x *= 2;
    v.y *= 2;
    v.z *= 2;
    v.w *= 2;
    reinterpret_cast<float4*>(out)[i] = v;
  }
  int tail = n / 4 * 4 + i;
  if (tail < n) out[tail] = 2 * __ldg(&in[tail]);
}
bool run_vector_copy() {
  std::vector<float> x = numbers(247);
  Buffer<float> in(x), out(247);
  cuda_launch(vector_copy, {1, 64}, in.data, out.data, 247);
  bool right = true;
  for (int i = 0; i < 247; ++i) right &= out.host()[i] == 2 * x[i];
  return right;
}

//// half_dot
__global__ void half_dot(const half* a, const nv_bfloat16* b, float* out, half* scaled) {
  int t = threadIdx.x;
  float sum = __half2float(a[t]) * __bfloat162float(b[t]);
  half2 pair = __halves2half2(a[t], a[63 - t]);
  pair = __hmul2(pair, __float2half2_rn(0.5f));
  scaled[t] = __low2half(pair) + __high2half(pair);
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  if (t % 32 == 0) atomicAdd(out, sum);
}
bool run_half_dot() {
  std::vector<half> x(64);
  std::vector<nv_bfloat16> y(64);
  for (int i = 0; i < 64; ++i) x[i] = __float2half(i * 0.25f), y[i] = __float2bfloat16(2.0f);
  Buffer<half> a(x), scaled(64);
  Buffer<nv_bfloat16> b(y);
  Buffer<float> out(std::vector<float>{0});
  cuda_launch(half_dot, {1, 64}, a.data, b.data, out.data, scaled.data);
  return out.host()[0] == 1008 && __half2float(scaled.host()[5]) == 7.875f;
}

//// rms_norm_warp
__global__ void rms_norm_warp(const float* x, const float* weight, float* y, int rows, int dim, float eps) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
  for (int i = lane; i < dim; i += 32) sum += x[row * dim + i] * x[row * dim + i];
  for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  float scale = rsqrtf(sum / dim + eps);
  for (int i = lane; i < dim; i += 32) y[row * dim + i] = weight[i] * x[row * dim + i] * scale;
}
bool run_rms_norm_warp() {
  const int rows = 7, dim = 72;
  std::vector<float> v = numbers(rows * dim), w = numbers(dim);
  Buffer<float> x(v), weight(w), y(rows * dim);
  cuda_launch(rms_norm_warp, {2, 128}, x.data, weight.data, y.data, rows, dim, 0.1f);
  std::vector<float> found = y.host();
  bool right = true;
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int i = 0; i < dim; ++i) sum += v[r * dim + i] * v[r * dim + i];
    for (int i = 0; i < dim; ++i)
      right &= near(found[r * dim + i], w[i] * v[r * dim + i] / std::sqrt(sum / dim + 0.1));
  }
  return right;
}

//// attention_online
// One query, one warp. The softmax is rescaled when a larger score comes (online softmax).
__global__ void attention_online(const float* q, const float* k, const float* v, float* out, int keys) {
  int lane = threadIdx.x;
  float largest = -INFINITY, sum = 0, mixed = 0;
  for (int i = 0; i < keys; ++i) {
    float score = q[lane] * k[i * 32 + lane];
    for (int d = 16; d > 0; d /= 2) score += __shfl_xor_sync(0xffffffffu, score, d);
    float now = fmaxf(largest, score), correction = expf(largest - now), p = expf(score - now);
    sum = sum * correction + p;
    mixed = mixed * correction + p * v[i * 32 + lane];
    largest = now;
  }
  out[lane] = mixed / sum;
}
bool run_attention_online() {
  const int keys = 9;
  std::vector<float> a = numbers(32), b = numbers(keys * 32), c = numbers(keys * 32);
  Buffer<float> q(a), k(b), v(c), out(32);
  cuda_launch(attention_online, {1, 32}, q.data, k.data, v.data, out.data, keys);
  std::vector<float> found = out.host();
  bool right = true;
  for (int j = 0; j < 32; ++j) {
    double sum = 0, mixed = 0;
    for (int i = 0; i < keys; ++i) {
      double score = 0;
      for (int l = 0; l < 32; ++l) score += a[l] * b[i * 32 + l];
      sum += std::exp(score);
      mixed += std::exp(score) * c[i * 32 + j];
    }
    right &= near(found[j], mixed / sum);
  }
  return right;
}

//// early_exit
// Threads that have ended do not take part in a barrier.
__global__ void early_exit(const int* in, int* out, int n) {
  __shared__ int part[64];
  int t = threadIdx.x;
  if (t >= n) return;
  part[t] = in[t];
  __syncthreads();
  out[t] = part[n - 1 - t];
}
bool run_early_exit() {
  std::vector<int> x(50);
  for (int i = 0; i < 50; ++i) x[i] = i;
  Buffer<int> in(x), out(50);
  cuda_launch(early_exit, {1, 64}, in.data, out.data, 50);
  bool right = true;
  for (int i = 0; i < 50; ++i) right &= out.host()[i] == 49 - i;
  return right;
}

//// compaction
__global__ void compaction(const int* in, int* out, int* count) {
  int lane = threadIdx.x % 32, value = in[threadIdx.x];
  unsigned keep = __ballot_sync(0xffffffffu, value > 0);
  int base = 0;
  if (lane == 0) base = atomicAdd(count, __popc(keep));
  base = __shfl_sync(0xffffffffu, base, 0);
  if (value > 0) out[base + __popc(keep & ((1u << lane) - 1))] = value;
}
bool run_compaction() {
  std::vector<int> x(64), kept;
  for (int i = 0; i < 64; ++i) x[i] = i % 3 == 0 ? -i : i;
  for (int v : x)
    if (v > 0) kept.push_back(v);
  Buffer<int> in(x), out(static_cast<int>(kept.size())), count(std::vector<int>{0});
  cuda_launch(compaction, {1, 64}, in.data, out.data, count.data);
  return out.host() == kept;
}

//// half_warps
// The two halves of a warp take different branches; the lanes of each half meet there.
__global__ void half_warps(int* out) {
  __shared__ int box[32];
  int lane = threadIdx.x;
  box[lane] = lane;
  if (lane < 16) {
    __syncwarp(0x0000ffffu);
    out[lane] = box[15 - lane] + __shfl_sync(0x0000ffffu, lane, 3);
  } else {
    __syncwarp(0xffff0000u);
    out[lane] = box[47 - lane] + __reduce_add_sync(0xffff0000u, 1);
  }
}
bool run_half_warps() {
  Buffer<int> out(32);
  cuda_launch(half_warps, {1, 32}, out.data);
  bool right = true;
  for (int i = 0; i < 32; ++i) right &= out.host()[i] == (i < 16 ? 15 - i + 3 : 47 - i + 16);
  return right;
}

//// until_nothing_changes
__global__ void until_nothing_changes(int* x) {
  __shared__ int level[64];
  int t = threadIdx.x;
  level[t] = x[t];
  __syncthreads();
  bool changed = true;
  while (__syncthreads_or(changed)) {
    int left = t > 0 ? level[t - 1] : 0;
    changed = left > level[t] + 1;
    __syncthreads();
    if (changed) level[t] = left - 1;
    __syncthreads();
  }
  x[t] = level[t] + 100 * __syncthreads_count(t % 2) + __syncthreads_and(t >= 0);
}
bool run_until_nothing_changes() {
  std::vector<int> x(64);
  x[3] = 20;
  Buffer<int> data(x);
  cuda_launch(until_nothing_changes, {1, 64}, data.data);
  bool right = true;
  for (int i = 0; i < 64; ++i) right &= data.host()[i] == 3201 + (i >= 3 && i < 23 ? 23 - i : 0);
  return right;
}

//// symbols_and_graphs
__constant__ float factors[4];
__device__ int launches;
__global__ void symbols_and_graphs(float* x) {
  if (threadIdx.x == 0) atomicAdd(&launches, 1);
  x[threadIdx.x] *= factors[threadIdx.x % 4];
}
bool run_symbols_and_graphs() {
  float values[4] = {2, 4, 1, 0.5f};
  int count = 0;
  cudaMemcpyToSymbol(factors, values, sizeof values);
  cudaMemcpyToSymbol(launches, &count, sizeof count);
  std::vector<float> ones(32, 1);
  Buffer<float> x(ones);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cuda_launch(symbols_and_graphs, {1, 32, 0, stream}, x.data);
  cuda_launch(symbols_and_graphs, {1, 32, 0, stream}, x.data);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  for (int i = 0; i < 2; ++i) cudaGraphLaunch(ready, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  cudaMemcpyFromSymbol(&count, launches, sizeof count);
  return count == 4 && x.host()[0] == 16 && x.host()[3] == 0.0625f;
}

//// constants
// Tables with and without a name, and a string literal.
__constant__ float four[4] = {1, 2, 3, 4};
static const int squares[5] = {0, 1, 4, 9, 16};
inline constexpr float thirds[3] = {1, 2, 3};
struct Powers {
  static constexpr int of_two[4] = {1, 2, 4, 8};
};
__device__ int sum_of(const int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[i];
  return sum;
}
__device__ const char* text(int which) { return which == 0 ? "even" : "odd"; }
__global__ void constants(int* out) {
  static const int inside[4] = {4, 3, 2, 1};
  constexpr int own[9] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
  const char letters[] = "a text in an array";
  const char* names[2] = {"zero", "one"};
  int t = threadIdx.x, sum = four[t % 4] + squares[t % 5] + thirds[t % 3] + Powers::of_two[t % 4];
  sum += inside[t % 4] + own[t % 9] + sum_of(squares, 5) + sum_of(own, 9) + sum_of(Powers::of_two, 4);
  for (int d : {16, 8, 4}) sum += d;
  out[t] = sum + letters[t % 18] + text(t % 2)[t % 4] + names[t % 2][t % 4] + "0123456789"[t % 10];
}
bool run_constants() {
  Buffer<int> out(32);
  cuda_launch(constants, {1, 32}, out.data);
  // The sums of the first four tables, of the other five, of the loop, and of the letters.
  return out.host()[1] == 7 + 101 + 28 + ' ' + 'd' + 'n' + '1' && out.host()[7] == 18 + 93 + 28 + 'i' + '7';
}

//// quantised_blocks
struct QuantisedBlock {
  half scale;
  signed char values[32];
};
__global__ void quantised_blocks(const QuantisedBlock* in, QuantisedBlock* copy, float* out) {
  QuantisedBlock block = in[threadIdx.x];
  memcpy(&copy[threadIdx.x], &block, sizeof block);
  float sum = 0;
  for (int i = 0; i < 32; ++i) sum += block.values[i];
  out[threadIdx.x] = sum * __half2float(block.scale);
}
bool run_quantised_blocks() {
  std::vector<QuantisedBlock> blocks(8);
  for (int i = 0; i < 8; ++i) {
    blocks[i].scale = __float2half(0.5f);
    for (int j = 0; j < 32; ++j) blocks[i].values[j] = i;
  }
  Buffer<QuantisedBlock> in(blocks), copy(8);
  Buffer<float> out(8);
  cuda_launch(quantised_blocks, {1, 8}, in.data, copy.data, out.data);
  return out.host()[7] == 112 && copy.host()[3].values[5] == 3;
}

//// bytes_side_by_side
// Threads write neighbouring bytes of one word, and members of a struct with padding.
struct Padded {
  char tag;
  float value;
};
__global__ void bytes_side_by_side(unsigned char* out, Padded* pairs, half* halves) {
  __shared__ unsigned char bytes[64];
  __shared__ Padded local[64];
  int t = threadIdx.x;
  bytes[t] = t;
  local[t].tag = 'a';
  local[t].value = t;
  __syncthreads();
  out[t] = bytes[63 - t];
  pairs[t] = local[63 - t];
  halves[t] = __float2half(1.0f);
}
bool run_bytes_side_by_side() {
  Buffer<unsigned char> out(64);
  Buffer<Padded> pairs(64);
  Buffer<half> halves(64);
  cuda_launch(bytes_side_by_side, {1, 64}, out.data, pairs.data, halves.data);
  return out.host()[0] == 63 && pairs.host()[1].value == 62;
}

//// stack_arrays
__device__ float dot4(const float (&a)[4], const float* b) {
  float sum = 0;
  for (int i = 0; i < 4; ++i) sum += a[i] * b[i];
  return sum;
}
template <int Count>
__global__ void stack_arrays(const float* in, float* out) {
  float mine[Count], reversed[Count];
  for (int i = 0; i < Count; ++i) mine[i] = in[threadIdx.x * Count + i];
  for (int i = 0; i < Count; ++i) reversed[i] = mine[Count - 1 - i];
  out[threadIdx.x] = dot4(mine, reversed);
}
bool run_stack_arrays() {
  std::vector<float> x = numbers(128);
  Buffer<float> in(x), out(32);
  cuda_launch(stack_arrays<4>, {1, 32}, in.data, out.data);
  bool right = true;
  for (int i = 0; i < 32; ++i) right &= near(out.host()[i], 2 * (x[4 * i] * x[4 * i + 3] + x[4 * i + 1] * x[4 * i + 2]));
  return right;
}

//// managed
__global__ void managed(int* x) { x[threadIdx.x] += 1; }
bool run_managed() {
  int* x;
  cudaMallocManaged(&x, 128);
  for (int i = 0; i < 32; ++i) x[i] = i;
  cuda_launch(managed, {1, 32}, x);
  cudaDeviceSynchronize();
  bool right = x[31] == 32;
  cudaFree(x);
  return right;
}

//// main
int main() {
  bool right = true;
#define RUN(name) \
  if (!run_##name()) std::printf("%s: wrong result\n", #name), right = false;
  RUN(reduce_tree)
  RUN(reduce_last_warp)
  RUN(reduce_shuffle)
  RUN(scan_two_buffers)
  RUN(scan_in_place)
  RUN(scan_warp)
  RUN(product_naive)
  RUN(product_tiled)
  RUN(product_async)
  RUN(transpose_padded)
  RUN(histogram)
  RUN(last_block_reduces)
  RUN(last_block_resets)
  RUN(atomics_made_of_cas)
  RUN(waits_for_a_value)
  RUN(fences_in_two_steps)
  RUN(fence_before_barrier)
  RUN(warp_to_warp)
  RUN(grid_barrier)
  RUN(spin_lock)
  RUN(vector_copy)
  RUN(half_dot)
  RUN(rms_norm_warp)
  RUN(attention_online)
  RUN(early_exit)
  RUN(compaction)
  RUN(half_warps)
  RUN(until_nothing_changes)
  RUN(symbols_and_graphs)
  RUN(constants)
  RUN(quantised_blocks)
  RUN(bytes_side_by_side)
  RUN(stack_arrays)
  RUN(managed)
  std::printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  return right ? 0 : 1;
}
