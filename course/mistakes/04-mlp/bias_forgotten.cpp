// Mistake: the weights without their biases.
#include "model/mlp.h"

#include "operators/add.h"
#include "operators/matmul_transb.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  const auto normed = w.normed.top_rows(x.rows());
  const auto gate = w.gate.top_rows(x.rows());
  const auto up = w.up.top_rows(x.rows());
  const auto down = w.projected.top_rows(x.rows());
  rms_norm(x, p.norm, config.norm_eps, normed);
  matmul_transb(1.0f, normed, p.gate.weight, 0.0f, gate);
  matmul_transb(1.0f, normed, p.up.weight, 0.0f, up);
  for (std::size_t t = 0; t < x.rows(); ++t) swiglu(gate.row(t), up.row(t), gate.row(t));
  matmul_transb(1.0f, gate, p.down.weight, 0.0f, down);
  add(down, x);
}

}  // namespace stagecraft
