// Our operators for the workers of composed stages: each calls ours and records the result.
// "plain_" are our own operators, which CMake compiles a second time with these names.
#include "course/worker/operator_record.h"
#include "model/linear.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

void plain_rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>);
void plain_linear(const Linear&, MatrixView<const float>, MatrixView<float>, ThreadPool&);
void plain_swiglu(std::span<const float>, std::span<const float>, std::span<float>);

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  plain_rms_norm(x, weight, eps, y);
  stages::record_operator(weight.data(), y);
}

void linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
            ThreadPool& threads) {
  plain_linear(layer, x, y, threads);
  stages::record_operator(layer.weight.data(), y);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  plain_swiglu(gate, up, y);
  stages::record_operator(nullptr, {y.data(), 1, y.size()});
}

}  // namespace stagecraft
