// nvcuda::wmma: a warp holds tiles of 16 x 16 numbers, "fragments", and multiplies them. Here, lane
// 2i holds the first half of row i (of column i with a column-major layout), and lane 2i + 1 the
// second half. CUDA does not say which numbers a lane holds; a GPU distributes them in another way.
#pragma once

namespace cuda_emulator {

struct HalfTile {
  const void* numbers;
  bool by_columns, is_bf16;
};

// Called by all lanes of a warp. The checker sees the accesses of each lane, for the line that
// called. stride: numbers from one row (or column) to the next.
void load_halves(void* tile, const void* from, unsigned stride);
void load_floats(float* tile, const float* from, unsigned stride, bool by_columns);
void store_floats(float* to, const float* tile, unsigned stride, bool by_columns);
// d = a * b + c, in f32
void multiply_tiles(float* d, HalfTile a, HalfTile b, const float* c);

}  // namespace cuda_emulator

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int m, int n, int k, class T, class Layout = void>
struct fragment {
  static_assert(m == 16 && n == 16 && k == 16, "the emulator has tiles of 16 x 16 x 16");
  static_assert(std::is_same_v<Use, accumulator>
                    ? std::is_same_v<T, float>
                    : std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>,
                "the emulator has products of half or bf16, and sums of float");
  using element_type = T;
  static constexpr int num_elements = 8;
  T x[num_elements];
};

template <class Use, class T, class Layout>
using Tile = fragment<Use, 16, 16, 16, T, Layout>;
using Sums = fragment<accumulator, 16, 16, 16, float>;

template <class Use, class T, class Layout>
__device__ inline void load_matrix_sync(Tile<Use, T, Layout>& to, const T* from, unsigned stride) {
  cuda_emulator::load_halves(to.x, from, stride);
}
__device__ inline void load_matrix_sync(Sums& to, const float* from, unsigned stride,
                                        layout_t layout) {
  cuda_emulator::load_floats(to.x, from, stride, layout == mem_col_major);
}
__device__ inline void store_matrix_sync(float* to, const Sums& from, unsigned stride,
                                         layout_t layout) {
  cuda_emulator::store_floats(to, from.x, stride, layout == mem_col_major);
}

template <class Use, int m, int n, int k, class T, class Layout>
__device__ inline void fill_fragment(fragment<Use, m, n, k, T, Layout>& to, const T& value) {
  for (T& number : to.x) number = value;
}

template <class T, class LayoutA, class LayoutB>
__device__ inline void mma_sync(Sums& d, const Tile<matrix_a, T, LayoutA>& a,
                                const Tile<matrix_b, T, LayoutB>& b, const Sums& c) {
  constexpr bool is_bf16 = std::is_same_v<T, __nv_bfloat16>;
  cuda_emulator::multiply_tiles(d.x, {a.x, std::is_same_v<LayoutA, col_major>, is_bf16},
                                {b.x, std::is_same_v<LayoutB, col_major>, is_bf16}, c.x);
}

}  // namespace nvcuda::wmma
