// Right: matmul_transb with tiles of 16 x 16.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kTile = 16;

__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int col = blockIdx.x * kTile + x;
  const int b_row = blockIdx.x * kTile + y;
  float sum = 0.0f;
  for (int piece = 0; piece < k; piece += kTile) {
    a_tile[y][x] = row < m && piece + x < k ? a[row * k + piece + x] : 0.0f;
    b_tile[y][x] = b_row < n && piece + x < k ? b[b_row * k + piece + x] : 0.0f;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += a_tile[y][p] * b_tile[x][p];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

}  // namespace

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  cuda_launch(product, {blocks, dim3(kTile, kTile)}, a, b, c, m, n, k);
}

}  // namespace stagecraft
