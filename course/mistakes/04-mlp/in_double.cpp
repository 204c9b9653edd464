// Right: linear maps of its own, summed backwards in double.
#include "model/mlp.h"

#include "operators/add.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {
namespace {

void map(const Linear& layer, MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t n = 0; n < y.cols(); ++n) {
      double sum = layer.bias.empty() ? 0.0 : layer.bias[n];
      for (std::size_t k = x.cols(); k-- > 0;)
        sum += static_cast<double>(x(t, k)) * layer.weight(n, k);
      y(t, n) = static_cast<float>(sum);
    }
  }
}

}  // namespace

void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  const auto normed = w.normed.top_rows(x.rows());
  const auto gate = w.gate.top_rows(x.rows());
  const auto up = w.up.top_rows(x.rows());
  const auto down = w.projected.top_rows(x.rows());
  rms_norm(x, p.norm, config.norm_eps, normed);
  map(p.gate, normed, gate);
  map(p.up, normed, up);
  for (std::size_t t = 0; t < x.rows(); ++t) swiglu(gate.row(t), up.row(t), gate.row(t));
  map(p.down, gate, down);
  add(down, x);
}

}  // namespace stagecraft
