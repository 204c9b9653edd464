#include "operators/matmul_packed.h"

#include <algorithm>

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// The contract is in src/operators/matmul_packed.h.
PackedMatrix pack_b(MatrixView<const float> b) {
  // A copy, row by row as B is: all you need until the fourth step of the ladder, and good to begin
  // with. The memory of a Matrix starts at a multiple of 64 bytes and is zero.
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    const auto row = b.row(n);
    std::copy(row.begin(), row.end(), packed.data.view().row(n).begin());
  }
  return packed;
}

void matmul_packed([[maybe_unused]] MatrixView<const float> a,
                   [[maybe_unused]] const PackedMatrix& b, [[maybe_unused]] MatrixView<float> c) {
  // First right: for each row m of A and each row n of B, the sum over k of a(m, k) * b(n, k).
  // Then fast, step by step, and right after each (the handout has the ladder):
  //   1. eight k at a time
  //   2. several such sums at a time
  //   3. a tile of C at a time: what is loaded once is used for several sums
  //   4. pack_b lays B out so that the tile reads it in one stream
  NOT_IMPLEMENTED("stage 9: matmul_packed");
}

}  // namespace stagecraft
