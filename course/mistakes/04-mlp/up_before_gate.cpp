// Right: up first, and the sum written as a loop.
#include "model/mlp.h"

#include "model/linear.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  const auto normed = w.normed.top_rows(x.rows());
  const auto gate = w.gate.top_rows(x.rows());
  const auto up = w.up.top_rows(x.rows());
  const auto down = w.projected.top_rows(x.rows());
  rms_norm(x, p.norm, config.norm_eps, normed);
  linear(p.up, normed, up, w.threads);
  linear(p.gate, normed, gate, w.threads);
  for (std::size_t t = 0; t < x.rows(); ++t) swiglu(gate.row(t), up.row(t), gate.row(t));
  linear(p.down, gate, down, w.threads);
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = x.cols(); i-- > 0;) x(t, i) = down(t, i) + x(t, i);
  }
}

}  // namespace stagecraft
