#pragma once

#include <cstddef>
#include <string_view>

namespace stagecraft {

// Throws Error "rms_norm: weight: expected 64 elements, found 32" unless both are equal.
void check_size(std::string_view op, std::string_view argument, std::size_t expected,
                std::size_t found);

// Throws Error "matmul_transb: c: expected [2, 8], found [8, 2]" unless `view` has these sizes.
void check_shape(std::string_view op, std::string_view argument, std::size_t expected_rows,
                 std::size_t expected_cols, std::size_t rows, std::size_t cols);

template <class View>
void check_shape(std::string_view op, std::string_view argument, std::size_t expected_rows,
                 std::size_t expected_cols, const View& view) {
  check_shape(op, argument, expected_rows, expected_cols, view.rows(), view.cols());
}

}  // namespace stagecraft
