#pragma once

#include "model/parameters.h"
#include "model/workspace.h"

namespace stagecraft {

// The feed-forward half of a layer, added to the residual stream:
//   x = x + down(swiglu(gate(n), up(n))),  n = rms_norm(x)
//
//   x  [seq_len, dim]  read and written
//
// Afterwards the workspace's `gate` holds the result of swiglu, and `up` that of the linear layer
// up.
void mlp(const Config& config, const MlpParameters& parameters, MatrixView<float> x,
         Workspace& workspace);

}  // namespace stagecraft
