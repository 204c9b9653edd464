// Right: one token after the other.
#include "model/mlp.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {

void mlp(const Config& config, const MlpParameters& p, MatrixView<float> x, Workspace& w) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto row = x.row_range(t, 1);
    const auto normed = w.normed.view().row_range(t, 1);
    const auto gate = w.gate.view().row_range(t, 1);
    const auto up = w.up.view().row_range(t, 1);
    const auto down = w.projected.view().row_range(t, 1);
    rms_norm(row, p.norm, config.norm_eps, normed);
    linear(p.gate, normed, gate, w.threads);
    linear(p.up, normed, up, w.threads);
    swiglu(gate.row(0), up.row(0), gate.row(0));
    linear(p.down, gate, down, w.threads);
    add(down, row);
  }
}

}  // namespace stagecraft
