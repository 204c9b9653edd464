#pragma once

#include "model/parameters.h"
#include "model/workspace.h"

namespace stagecraft {

// The feed-forward half of a layer, added to the residual stream:
//   x = x + down(swiglu(gate(n), up(n))),  n = rms_norm(x)
//
//   x  [seq_len, dim]  read and written; 0 <= seq_len <= workspace.max_rows. In the model, x is in
//      workspace.hidden; x must not overlap the other buffers.
void mlp(const Config& config, const MlpParameters& parameters, MatrixView<float> x,
         Workspace& workspace);

}  // namespace stagecraft
