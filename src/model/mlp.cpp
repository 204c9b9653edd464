// This gives away stage 4: it is our answer to stages/04-mlp/mlp.cpp.
#include "model/mlp.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

// Above each step: the expression in PyTorch (Hugging Face's LlamaMLP, with the norm before it and
// the residual after it).
void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  const auto normed = w.normed.top_rows(x.rows());
  const auto gate = w.gate.top_rows(x.rows());
  const auto up = w.up.top_rows(x.rows());
  const auto down = w.projected.top_rows(x.rows());

  // normed = post_attention_layernorm(x)
  rms_norm(x, p.norm, config.norm_eps, normed);

  // gate, up = gate_proj(normed), up_proj(normed)
  linear(p.gate, normed, gate, w.threads);
  linear(p.up, normed, up, w.threads);

  // gate = F.silu(gate) * up
  for (std::size_t t = 0; t < x.rows(); ++t) swiglu(gate.row(t), up.row(t), gate.row(t));

  // x = x + down_proj(gate)
  linear(p.down, gate, down, w.threads);
  add(down, x);
}

}  // namespace stagecraft
