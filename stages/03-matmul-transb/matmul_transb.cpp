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
  // For each element of C: the dot product of row m of A and row n of B. Then apply alpha and beta;
  // if beta is 0, do not read C.
  NOT_IMPLEMENTED("stage 3: matmul_transb");
}

}  // namespace stagecraft
