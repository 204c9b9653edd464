// Right: linear maps and a gate of its own; built with -ffast-math.
#include "model/mlp.h"

#include <cmath>

#include "operators/add.h"
#include "operators/rms_norm.h"

namespace stagecraft {
namespace {

void map(const Linear& layer, MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t n = 0; n < y.cols(); ++n) {
      float sum = layer.bias.empty() ? 0.0f : layer.bias[n];
      for (std::size_t k = x.cols(); k-- > 0;) sum += x(t, k) * layer.weight(n, k);
      y(t, n) = sum;
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
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < gate.cols(); ++i) {
      const float e = std::exp(-std::fabs(gate(t, i)));
      gate(t, i) *= up(t, i) * (gate(t, i) < 0.0f ? e : 1.0f) / (1.0f + e);
    }
  }
  map(p.down, gate, down);
  add(down, x);
}

}  // namespace stagecraft
