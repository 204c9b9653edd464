// Step 0 of stage 9, compiled without SIMD. The call "nothing" leaves the product out: it measures
// the time that a worker spends on everything else.
#include "course/worker/calls.h"
#include "course/worker/chain.h"

namespace stagecraft::stages {
namespace {

void multiply(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < a.cols(); ++k) sum += a(m, k) * b(n, k);
      c(m, n) = sum;
    }
  }
}

void call_step_0(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto b = args.matrix("b");
  run_chain(args, noise, b.cols(),
            [&](MatrixView<const float> a, MatrixView<float> c) { multiply(a, b, c); });
}

void call_nothing(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto b = args.matrix("b");
  run_chain(args, noise, b.cols(), [](MatrixView<const float>, MatrixView<float>) {});
}

const Callable kPlainCalls{{"step 0 of simd, again and again", call_step_0},
                           {"nothing, again and again", call_nothing}};

}  // namespace

}  // namespace stagecraft::stages
