// Mistake: gate and up see x, not the norm of x.
#include "model/mlp.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/swiglu.h"

namespace stagecraft {

void mlp([[maybe_unused]] const Config& config, const MlpParameters& p, MatrixView<float> x,
         Workspace& w) {
  const auto gate = w.gate.top_rows(x.rows());
  const auto up = w.up.top_rows(x.rows());
  const auto down = w.projected.top_rows(x.rows());
  linear(p.gate, x, gate, w.threads);
  linear(p.up, x, up, w.threads);
  for (std::size_t t = 0; t < x.rows(); ++t) swiglu(gate.row(t), up.row(t), gate.row(t));
  linear(p.down, gate, down, w.threads);
  add(down, x);
}

}  // namespace stagecraft
