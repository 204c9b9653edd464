#include "operators/check.h"

#include "base/error.h"

namespace stagecraft {

void check_size(std::string_view op, std::string_view argument, std::size_t expected,
                std::size_t found) {
  if (expected == found) return;
  throw Error("{}: {}: expected {} elements, found {}", op, argument, expected, found);
}

void check_shape(std::string_view op, std::string_view argument, std::size_t expected_rows,
                 std::size_t expected_cols, std::size_t rows, std::size_t cols) {
  if (expected_rows == rows && expected_cols == cols) return;
  throw Error("{}: {}: expected [{}, {}], found [{}, {}]", op, argument, expected_rows,
              expected_cols, rows, cols);
}

}  // namespace stagecraft
