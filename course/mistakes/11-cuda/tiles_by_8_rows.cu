// Right: matmul_transb with tiles of 32 x 32 in blocks of 32 x 8 threads.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kTile = 32;
constexpr int kRows = 8;  // of threads

__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = threadIdx.x;
  const int row = blockIdx.y * kTile;
  const int col = blockIdx.x * kTile;
  float sums[kTile / kRows] = {};
  for (int piece = 0; piece < k; piece += kTile) {
    for (int y = threadIdx.y; y < kTile; y += kRows) {
      a_tile[y][x] = row + y < m && piece + x < k ? a[(row + y) * k + piece + x] : 0.0f;
      b_tile[y][x] = col + y < n && piece + x < k ? b[(col + y) * k + piece + x] : 0.0f;
    }
    __syncthreads();
    for (int i = 0; i < kTile / kRows; ++i) {
      const int y = threadIdx.y + i * kRows;
      for (int p = 0; p < kTile; ++p) sums[i] += a_tile[y][p] * b_tile[x][p];
    }
    __syncthreads();
  }
  for (int i = 0; i < kTile / kRows; ++i) {
    const int y = threadIdx.y + i * kRows;
    if (row + y < m && col + x < n) c[(row + y) * n + col + x] = sums[i];
  }
}

}  // namespace

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  cuda_launch(product, {blocks, dim3(kTile, kRows)}, a, b, c, m, n, k);
}

}  // namespace stagecraft
