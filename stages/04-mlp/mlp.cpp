#include "model/mlp.h"

#include "base/not_implemented.h"
#include "model/linear.h"
#include "operators/add.h"
#include "operators/rms_norm.h"
#include "operators/swiglu.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// The contract is in src/model/mlp.h. Everything you need is there already: rms_norm, swiglu, add,
// and linear (a matmul_transb with the bias and the threads; src/model/linear.h).
void mlp([[maybe_unused]] const Config& config, [[maybe_unused]] const MlpParameters& p,
         [[maybe_unused]] MatrixView<float> x, [[maybe_unused]] Workspace& w) {
  // Room to work in, as many rows as x has; take these views, allocate nothing.
  [[maybe_unused]] const auto normed = w.normed.top_rows(x.rows());   // [seq_len, dim]
  [[maybe_unused]] const auto gate = w.gate.top_rows(x.rows());       // [seq_len, ffn_dim]
  [[maybe_unused]] const auto up = w.up.top_rows(x.rows());           // [seq_len, ffn_dim]
  [[maybe_unused]] const auto down = w.projected.top_rows(x.rows());  // [seq_len, dim]

  // 1. rms_norm of x, with p.norm and config.norm_eps, into normed
  // 2. gate and up: two linear maps of normed, p.gate and p.up (w.threads is the last argument)
  // 3. swiglu, row by row, into gate
  // 4. down: the linear map p.down of that
  // 5. add it to x
  //
  // After a step, w.probe("gate", gate) shows the gate what you have: then it can say which step
  // goes wrong first. The names: mlp_norm, gate, up, swiglu, down, mlp_residual.
  NOT_IMPLEMENTED("stage 4: mlp");
}

}  // namespace stagecraft
