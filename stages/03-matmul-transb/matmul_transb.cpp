#include "operators/matmul_transb.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// The contract is in src/operators/matmul_transb.h.
void matmul_transb([[maybe_unused]] float alpha, [[maybe_unused]] MatrixView<const float> a,
                   [[maybe_unused]] MatrixView<const float> b, [[maybe_unused]] float beta,
                   [[maybe_unused]] MatrixView<float> c) {
  // For each row m of A and each row n of B (a row of B, because B is transposed):
  //   1. the sum over k of a(m, k) * b(n, k)
  //   2. where beta is 0: c(m, n) = alpha * sum, without reading c (it may hold NaN)
  //      else:            c(m, n) = alpha * sum + beta * c(m, n)
  NOT_IMPLEMENTED("stage 3: matmul_transb");
}

}  // namespace stagecraft
