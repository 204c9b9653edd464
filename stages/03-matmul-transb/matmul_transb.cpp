#include "operators/matmul_transb.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// The contract is in src/operators/matmul_transb.h.
void matmul_transb([[maybe_unused]] float alpha, [[maybe_unused]] MatrixView<const float> a,
                   [[maybe_unused]] MatrixView<const float> b, [[maybe_unused]] float beta,
                   [[maybe_unused]] MatrixView<float> c) {
  // One sum for each element of C: row m of A with row n of B. Then alpha and beta; where beta is
  // 0, C is not read.
  NOT_IMPLEMENTED("stage 3: matmul_transb");
}

}  // namespace stagecraft
