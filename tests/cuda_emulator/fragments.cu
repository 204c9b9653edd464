// Correct products of a warp, with nvcuda::wmma and with registers (warp_matrix.h). The checker must find nothing.
#include <mma.h>

#include "host.h"
#include "warp_matrix.h"

using namespace nvcuda;

constexpr int kM = 32, kN = 48, kK = 64;

// out^T = a * b + c. One warp per tile; the tiles are loaded from global memory.
template <class T, class LayoutA, class LayoutB>
__global__ void tiles(const T* a, const T* b, const float* c, float* out) {
  const int row = blockIdx.y * 16, col = blockIdx.x * 16;
  constexpr bool a_by_rows = std::is_same_v<LayoutA, wmma::row_major>;
  constexpr bool b_by_rows = std::is_same_v<LayoutB, wmma::row_major>;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::load_matrix_sync(sums, c + row * kN + col, kN, wmma::mem_row_major);
  for (int k = 0; k < kK; k += 16) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, T, LayoutA> first;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, T, LayoutB> second;
    wmma::load_matrix_sync(first, a_by_rows ? a + row * kK + k : a + k * kM + row,
                           a_by_rows ? kK : kM);
    wmma::load_matrix_sync(second, b_by_rows ? b + k * kN + col : b + col * kK + k,
                           b_by_rows ? kN : kK);
    wmma::mma_sync(sums, first, second, sums);
  }
  wmma::store_matrix_sync(out + col * kM + row, sums, kM, wmma::mem_col_major);
}

// Four warps fill a tile in shared memory together. Then each warp multiplies it.
__global__ void squares(const float* x, float* out) {
  __shared__ __align__(32) __half tile[16 * 16];
  __shared__ __align__(32) float results[4][16 * 16];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] = __float2half(x[i]);
  __syncthreads();
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
  wmma::load_matrix_sync(a, tile, 16);
  wmma::load_matrix_sync(b, tile, 16);
  wmma::fill_fragment(sums, 1.0f);
  wmma::mma_sync(sums, a, b, sums);
  for (int i = 0; i < sums.num_elements; ++i) sums.x[i] *= 2.0f;
  wmma::store_matrix_sync(results[threadIdx.x / 32], sums, 16, wmma::mem_row_major);
  __syncthreads();
  for (int i = threadIdx.x; i < 4 * 256; i += blockDim.x) out[i] = results[i / 256][i % 256];
}

// out += a * b^T, with a [16][16], b [8][16] and out [16][8]. The lanes load their registers as
// warp_matrix.h says.
template <class T>
__global__ void of_registers(const T* a, const T* b, float* out) {
  const int g = threadIdx.x / 4, t = 2 * (threadIdx.x % 4);
  const auto pair = [](const T* from) { return *reinterpret_cast<const unsigned*>(from); };
  const unsigned in_a[4] = {pair(a + 16 * g + t), pair(a + 16 * (g + 8) + t),
                            pair(a + 16 * g + t + 8), pair(a + 16 * (g + 8) + t + 8)};
  const unsigned in_b[2] = {pair(b + 16 * g + t), pair(b + 16 * g + t + 8)};
  float sums[4];
  for (int i = 0; i < 4; ++i) sums[i] = out[8 * (g + i / 2 * 8) + t + i % 2];
  if constexpr (std::is_same_v<T, __half>) {
    multiply_f16(sums, in_a, in_b);
  } else {
    multiply_bf16(sums, in_a, in_b);
  }
  for (int i = 0; i < 4; ++i) out[8 * (g + i / 2 * 8) + t + i % 2] = sums[i];
}

template <class T>
std::vector<T> rounded(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::vector<float> transposed(const std::vector<float>& values, int rows, int cols) {
  std::vector<float> result(values.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < cols; ++j) result[j * rows + i] = values[i * cols + j];
  return result;
}

template <class T, class LayoutA, class LayoutB>
bool tiles_are_right() {
  const std::vector<float> a = numbers(kM * kK), b = numbers(kN * kK);  // b: [kN, kK]
  std::vector<float> c(kM * kN, 3.0f);
  const bool a_by_rows = std::is_same_v<LayoutA, wmma::row_major>;
  const bool b_by_rows = std::is_same_v<LayoutB, wmma::row_major>;
  Buffer<T> in_a(rounded<T>(a_by_rows ? a : transposed(a, kM, kK)));
  Buffer<T> in_b(rounded<T>(b_by_rows ? transposed(b, kN, kK) : b));
  Buffer<float> in_c(c), out(kM * kN);
  cuda_launch(tiles<T, LayoutA, LayoutB>, {dim3(kN / 16, kM / 16), 32}, in_a.data, in_b.data,
              in_c.data, out.data);
  std::vector<float> found = transposed(out.host(), kN, kM);
  for (float& value : found) value -= 3.0f;
  return is_product(found, a, b, kM, kN, kK);
}

bool squares_are_right() {
  const std::vector<float> x = numbers(256);
  Buffer<float> in(x), out(4 * 256);
  cuda_launch(squares, {1, 128}, in.data, out.data);
  bool right = true;
  for (int warp = 0; warp < 4; ++warp) {
    const std::vector<float> all = out.host();
    std::vector<float> found(all.begin() + warp * 256, all.begin() + (warp + 1) * 256);
    for (float& value : found) value = value / 2 - 1;
    right &= is_product(found, x, x, 16, 16, 16);
  }
  return right;
}

template <class T>
bool registers_are_right() {
  const std::vector<float> a = numbers(16 * 16), b = numbers(8 * 16);
  Buffer<T> in_a(rounded<T>(a)), in_b(rounded<T>(b));
  Buffer<float> out(std::vector<float>(16 * 8, 3.0f));
  cuda_launch(of_registers<T>, {1, 32}, in_a.data, in_b.data, out.data);
  std::vector<float> found = out.host();
  for (float& value : found) value -= 3.0f;
  return is_product(found, a, b, 16, 8, 16);
}

int main() {
  using Rows = wmma::row_major;
  using Cols = wmma::col_major;
  const bool right[] = {tiles_are_right<__half, Rows, Cols>(),
                        tiles_are_right<__half, Cols, Rows>(),
                        tiles_are_right<__nv_bfloat16, Rows, Rows>(),
                        tiles_are_right<__nv_bfloat16, Cols, Cols>(), squares_are_right(),
                        registers_are_right<__half>(), registers_are_right<__nv_bfloat16>()};
  int wrong = 0;
  for (bool one : right) wrong += !one;
  return wrong;
}
