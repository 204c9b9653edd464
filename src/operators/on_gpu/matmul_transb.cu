// This gives away stage 11: it is our answer to stages/11-cuda/matmul_transb.cu.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // threadIdx.y; each thread computes kTile / kRows elements of C

// A block computes a tile of C. It copies the rows of A and B that it needs into shared memory, one
// piece along k after the other. Neighbouring threads read neighbouring numbers, and each number is
// used in kTile products. `b_tile` has one unused column, so that threads that read down a column
// access 32 different banks.
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = threadIdx.x;
  const int first_row = blockIdx.y * kTile;
  const int first_col = blockIdx.x * kTile;
  float sums[kTile / kRows] = {};
  for (int piece = 0; piece < k; piece += kTile) {
    for (int y = threadIdx.y; y < kTile; y += kRows) {
      const bool in_k = piece + x < k;
      a_tile[y][x] = in_k && first_row + y < m ? a[(first_row + y) * k + piece + x] : 0.0f;
      b_tile[y][x] = in_k && first_col + y < n ? b[(first_col + y) * k + piece + x] : 0.0f;
    }
    __syncthreads();
    for (int p = 0; p < kTile; ++p) {
      const float from_b = b_tile[x][p];
      for (int i = 0; i < kTile / kRows; ++i) {
        sums[i] += a_tile[threadIdx.y + i * kRows][p] * from_b;
      }
    }
    __syncthreads();  // before a thread overwrites a tile, all threads have read it
  }
  for (int i = 0; i < kTile / kRows; ++i) {
    const int row = first_row + threadIdx.y + i * kRows;
    if (row < m && first_col + x < n) c[row * n + first_col + x] = sums[i];
  }
}

// If A has a single row, each number of B is used only once, so shared memory does not help. One
// warp computes one element of C; its lanes share the products along k.
__global__ void product_of_row(const float* a, const float* b, float* c, int n, int k) {
  const int col = blockIdx.x * kRows + threadIdx.y;
  if (col >= n) return;  // the whole warp
  float sum = 0.0f;
  for (int p = threadIdx.x; p < k; p += 32) sum += a[p] * b[col * k + p];
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, distance);
  }
  if (threadIdx.x == 0) c[col] = sum;
}

}  // namespace

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  if (m == 1) {
    const unsigned blocks = (n + kRows - 1) / kRows;
    cuda_launch(product_of_row, {blocks, dim3(32, kRows)}, a, b, c, n, k);
    return;
  }
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  cuda_launch(product, {blocks, dim3(kTile, kRows)}, a, b, c, m, n, k);
}

}  // namespace stagecraft
