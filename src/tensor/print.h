#pragma once

#include <concepts>
#include <functional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/matrix.h"

namespace stagecraft {

// For debugging: print(q, "q") writes to stdout
//
//   q [2, 3]
//   tensor([[ 0.5000, -1.0000,  2.2500],
//           [    nan,  0.0000,     inf]])
//
// The numbers are printed as PyTorch prints them: four decimals, or powers of ten if they differ by
// more than a factor of 1000. If there are more than 200 elements (PyTorch: 1000), only three at
// each end of a row and of a column are printed. stdout is flushed before print returns, so the
// text is not lost if the program crashes next.

// A tensor of any type, as print needs it.
struct Printable {
  std::vector<std::size_t> shape;  // zero, one or two dimensions
  bool has_fractions = true;       // true for a floating-point type
  std::function<double(std::size_t row, std::size_t col)> at;
};

// The lines that print writes, without the last newline.
std::string printed(const Printable& tensor, std::string_view name);
void print(const Printable& tensor, std::string_view name);

template <class T>
concept Number = std::integral<T> || std::floating_point<T>;

template <class T>
requires Number<std::remove_const_t<T>>
void print(MatrixView<T> x, std::string_view name = {}) {
  print(Printable{{x.rows(), x.cols()},
                  std::floating_point<std::remove_const_t<T>>,
                  [x](std::size_t row, std::size_t col) { return double(x(row, col)); }},
        name);
}

template <Number T>
void print(const Matrix<T>& x, std::string_view name = {}) {
  print(x.view(), name);
}

// A std::span, std::vector or std::array.
template <std::ranges::contiguous_range R>
requires Number<std::ranges::range_value_t<R>>
void print(const R& x, std::string_view name = {}) {
  const auto* data = std::ranges::data(x);
  print(Printable{{std::ranges::size(x)},
                  std::floating_point<std::ranges::range_value_t<R>>,
                  [data](std::size_t, std::size_t col) { return double(data[col]); }},
        name);
}

template <Number T>
void print(T x, std::string_view name = {}) {
  print(Printable{{}, std::floating_point<T>, [x](std::size_t, std::size_t) { return double(x); }},
        name);
}

}  // namespace stagecraft
