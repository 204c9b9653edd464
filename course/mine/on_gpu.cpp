// Stage 11 in a --mine program. The student's kernels run on the emulator without checks, so that a
// token takes a fraction of a second. They read and write the model's memory directly. A real GPU
// would keep the weights and the cache in its own memory.
#include "course/mine/on_gpu.h"

#include "base/error.h"
#include "course/mine/linear_way_ranks.h"
#include "cuda_emulator/guest.h"
#include "operators/on_gpu.h"

namespace stagecraft {

namespace {

bool gpu_linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                ThreadPool& /*threads*/) {
  const Compact in(x);
  const Compact weight(layer.weight);
  Matrix<float> out(y.rows(), y.cols());
  on_gpu([&] {
    matmul_transb_on_gpu(in.data(), weight.data(), out.data(), static_cast<int>(x.rows()),
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

Compact::Compact(MatrixView<const float> view) : data_(view.data()) {
  if (view.rows() <= 1 || view.stride() == view.cols()) return;
  copy_ = Matrix<float>(view.rows(), view.cols());
  for (std::size_t r = 0; r < view.rows(); ++r) {
    std::ranges::copy(view.row(r), copy_.view().row(r).begin());
  }
  data_ = copy_.data();
}

void on_gpu(const std::function<void()>& launch) {
  launch();
  const std::string report = cuda_emulator::take_report();
  const std::size_t found = report.find("finding\t");
  if (found == std::string::npos) return;
  std::string text = report.substr(found + 8, report.find('\n', found) - found - 8);
  std::ranges::replace(text, '\t', ' ');
  throw Error("stage 11: {}", text);
}

}  // namespace stagecraft
