// Stage 11 in a --mine program: the student's kernels compute the linear layers (here), the norms
// (rms_norm.cpp) and attention (attention.cpp).
#include "course/mine/on_gpu.h"

#include <algorithm>

#include "base/error.h"
#include "course/mine/linear_way_ranks.h"
#include "operators/on_gpu.h"

namespace stagecraft {

namespace {

bool gpu_linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                ThreadPool& /*threads*/) {
  const Compact in(x);
  const Compact weight(layer.weight);
  Matrix<float> out(y.rows(), y.cols());
  on_gpu({in.numbers(), weight.numbers()}, {out.data(), out.rows() * out.cols()},
         [&](std::span<const float* const> from, float* to) {
           matmul_transb_on_gpu(from[0], from[1], to, static_cast<int>(x.rows()),
                                static_cast<int>(layer.weight.rows()), static_cast<int>(x.cols()));
         });
  for (std::size_t t = 0; t < y.rows(); ++t) {
    for (std::size_t n = 0; n < y.cols(); ++n) {
      y(t, n) = out.view()(t, n) + (layer.bias.empty() ? 0.0f : layer.bias[n]);
    }
  }
  return true;
}

[[maybe_unused]] const bool known = add_linear_way({kOnGpu, gpu_linear});

}  // namespace

Compact::Compact(MatrixView<const float> view) : numbers_(view.data(), view.rows() * view.cols()) {
  if (view.rows() <= 1 || view.stride() == view.cols()) return;
  copy_ = Matrix<float>(view.rows(), view.cols());
  for (std::size_t r = 0; r < view.rows(); ++r) {
    std::ranges::copy(view.row(r), copy_.view().row(r).begin());
  }
  numbers_ = {copy_.data(), numbers_.size()};
}

void on_gpu(Numbers inputs, std::span<float> output, const Launch& launch) {
  const std::string problem = run_on_device(inputs, output, launch);
  if (!problem.empty()) throw Error("stage 11: {}", problem);
}

}  // namespace stagecraft
