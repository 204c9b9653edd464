// Kernels whose counts were computed on paper. The test reads them from the comment behind each line:
//   // count: WAY requests sectors ideal    of a line that uses global memory
//   // count: WAY requests conflicts        of a line that uses shared memory
#include "host.h"

// Matrices of 64 x 64, blocks of 32 x 32 threads: 4 blocks of 32 warps. A warp reads one row of a and 32 rows of b.
__global__ void product_naive(const float* a, const float* b, float* c) {
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 64; ++i) {
    float x = a[row * 64 + i];     // count: global read 8192 8192 8192
    float y = b[column * 64 + i];  // count: global read 8192 262144 32768
    sum += x * y;
  }
  c[row * 64 + column] = sum;  // count: global write 128 512 512
}

__global__ void product_tiled(const float* a, const float* b, float* c) {
  __shared__ float tile_a[32][33], tile_b[32][33];
  int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int i = 0; i < 64; i += 32) {
    float x = a[row * 64 + i + threadIdx.x];                               // count: global read 256 1024 1024
    float y = b[(blockIdx.x * 32 + threadIdx.y) * 64 + i + threadIdx.x];  // count: global read 256 1024 1024
    tile_a[threadIdx.y][threadIdx.x] = x;                                  // count: shared write 256 0
    tile_b[threadIdx.y][threadIdx.x] = y;                                  // count: shared write 256 0
    __syncthreads();
    for (int l = 0; l < 32; ++l) {
      float u = tile_a[threadIdx.y][l];  // count: shared read 8192 0
      float v = tile_b[threadIdx.x][l];  // count: shared read 8192 0
      sum += u * v;
    }
    __syncthreads();
  }
  c[row * 64 + column] = sum;  // count: global write 128 512 512
}

// One block of 32 warps. Without padding, each of the 32 reads of a column accesses one bank 32 times.
__global__ void transpose_conflicts(const float* in, float* out) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  float v = tile[threadIdx.x][threadIdx.y];    // count: shared read 32 992
  out[threadIdx.y * 32 + threadIdx.x] = v;  // count: global write 32 128 128
}

__global__ void transpose_padded(const float* in, float* out) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  float v = tile[threadIdx.x][threadIdx.y];  // count: shared read 32 0
  out[threadIdx.y * 32 + threadIdx.x] = v;
}

__global__ void strides(const float* in, float* out) {
  __shared__ float s[64];
  __shared__ float4 wide[32];
  __shared__ double pairs[64];
  int t = threadIdx.x;
  float one = in[0];                                      // count: global read 1 1 1
  float twice = in[2 * t];                                // count: global read 1 8 4
  float shifted = in[t + 1];                              // count: global read 1 5 4
  float few = t < 8 ? in[t] : 0;                          // count: global read 1 1 1
  float4 four = reinterpret_cast<const float4*>(in)[t];   // count: global read 1 16 16
  s[2 * t] = one + twice;                                 // count: shared write 1 1
  __syncwarp();
  float same = s[2 * (t / 2)];                            // count: shared read 1 0
  wide[t] = four;                                         // count: shared write 1 0
  pairs[t] = shifted;                                     // count: shared write 1 0
  __syncwarp();
  double apart = pairs[t % 2 * 16];                       // count: shared read 1 2
  out[t] = apart + few + same;                            // count: global write 1 4 4
}

// Each lane repeats the loop as often as its number says. The k-th iteration of all lanes is one request.
__global__ void ragged(const float* in, float* out) {
  float sum = 0;
  for (int i = 0; i <= threadIdx.x; ++i) {
    float v = in[i];  // count: global read 32 32 32
    sum += v;
  }
  out[threadIdx.x] = sum;  // count: global write 1 4 4
}

int main() {
  Buffer<float> a(numbers(4096)), b(numbers(4096)), c(4096);
  cuda_launch(product_naive, {{2, 2}, {32, 32}}, a.data, b.data, c.data);
  cuda_launch(product_tiled, {{2, 2}, {32, 32}}, a.data, b.data, c.data);
  cuda_launch(transpose_conflicts, {1, {32, 32}}, a.data, c.data);
  cuda_launch(transpose_padded, {1, {32, 32}}, a.data, c.data);
  cuda_launch(ragged, {1, 32}, a.data, c.data);
  cuda_launch(strides, {1, 32}, a.data, c.data);
}
