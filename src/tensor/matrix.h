#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <span>
#include <type_traits>
#include <utility>

namespace stagecraft {

// A MatrixView does not own its memory, a Matrix does: so a signature says who owns memory.
// A vector is a std::span.

// A row-major matrix in memory that it does not own: a pointer, two sizes, and the distance from
// row to row (stride), in elements. Pass it by value. Element (r, c) is data[r * stride + c].
// Indices are checked by assert only.
template <class T>
class MatrixView {
 public:
  MatrixView() = default;
  MatrixView(T* data, std::size_t rows, std::size_t cols, std::size_t stride)
      : data_(data), rows_(rows), cols_(cols), stride_(stride) {
    assert(stride >= cols);
  }
  MatrixView(T* data, std::size_t rows, std::size_t cols) : MatrixView(data, rows, cols, cols) {}

  // A view that can write converts to one that can only read.
  operator MatrixView<const T>() const requires(!std::is_const_v<T>) {
    return {data_, rows_, cols_, stride_};
  }

  T* data() const { return data_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  std::size_t stride() const { return stride_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }

  std::span<T> row(std::size_t r) const {
    assert(r < rows_);
    return {data_ + r * stride_, cols_};
  }
  T& operator()(std::size_t r, std::size_t c) const {
    assert(r < rows_ && c < cols_);
    return data_[r * stride_ + c];
  }

  // `count` rows from row `first` on, all columns.
  MatrixView row_range(std::size_t first, std::size_t count) const {
    assert(first + count <= rows_);
    return {data_ + first * stride_, count, cols_, stride_};
  }
  // `count` columns from column `first` on, all rows: for example one attention head.
  MatrixView col_range(std::size_t first, std::size_t count) const {
    assert(first + count <= cols_);
    return {data_ + first, rows_, count, stride_};
  }

 private:
  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
  std::size_t stride_ = 0;
};

// A row-major matrix that owns its memory: zeros at first, 64-byte aligned, rows without gaps. It
// can be moved, but not copied. The pages of a large matrix take no memory until they are written.
// The constructor throws std::bad_alloc if there is not enough memory.
template <class T>
class Matrix {
  static_assert(std::is_trivial_v<T>);

 public:
  Matrix() = default;
  Matrix(std::size_t rows, std::size_t cols) : rows_(rows), cols_(cols) {
    if (rows == 0 || cols == 0) return;
    if (cols > (SIZE_MAX - kAlignment) / sizeof(T) / rows) throw std::bad_alloc();
    // calloc, because it does not write fresh pages: they are zero already. It aligns to 16 bytes
    // only, so allocate more and start at the next multiple of 64.
    memory_ = std::calloc(rows * cols * sizeof(T) + kAlignment, 1);
    if (memory_ == nullptr) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(memory_);
    data_ = reinterpret_cast<T*>((address + kAlignment - 1) / kAlignment * kAlignment);
  }
  Matrix(Matrix&& other) noexcept { *this = std::move(other); }
  Matrix& operator=(Matrix&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(rows_, other.rows_);
    std::swap(cols_, other.cols_);
    return *this;
  }
  ~Matrix() { std::free(memory_); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }

  MatrixView<T> view() { return {data_, rows_, cols_}; }
  MatrixView<const T> view() const { return {data_, rows_, cols_}; }
  // The first `count` rows: a workspace for the longest prompt also serves a shorter one.
  MatrixView<T> top_rows(std::size_t count) { return view().row_range(0, count); }

 private:
  static constexpr std::size_t kAlignment = 64;

  void* memory_ = nullptr;  // the allocation that data_ points into
  T* data_ = nullptr;
  std::size_t rows_ = 0;
  std::size_t cols_ = 0;
};

}  // namespace stagecraft
