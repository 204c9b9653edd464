// This gives away stage 4: it is our answer to stages/04-mlp/mlp.cpp.
#include "model/mlp.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  const std::size_t seq_len = x.rows();
  const auto normed = w.normed.top_rows(seq_len);
  const auto gate = w.gate.top_rows(seq_len);
  const auto up = w.up.top_rows(seq_len);
  const auto down = w.projected.top_rows(seq_len);

  rms_norm(x, p.norm, config.norm_eps, normed);
  w.probe("mlp_norm", normed);
  linear(p.gate, normed, gate, w.threads);
  w.probe("gate", gate);
  linear(p.up, normed, up, w.threads);
  w.probe("up", up);
  for (std::size_t t = 0; t < seq_len; ++t) swiglu(gate.row(t), up.row(t), gate.row(t));
  w.probe("swiglu", gate);
  linear(p.down, gate, down, w.threads);
  w.probe("down", down);
  add(down, x);
  w.probe("mlp_residual", x);
}

}  // namespace stagecraft
