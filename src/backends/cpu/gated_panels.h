#pragma once

#include "backends/cpu/thread_slice.h"
#include "model/plan.h"

namespace stagecraft {

// f(gate . row) * (up . row), with two matrices of the same size.
struct GatedProduct {
  const PanelMatrix& gate;
  const PanelMatrix& up;
  const float* gate_bias;  // [outputs], or nullptr
  const float* up_bias;
  ActivateStep::Function function;
  float limit = 0.0f, alpha = 1.0f;  // limit is not 0: operators/clamped_swiglu.h instead of f
};

// Where the result is written: as floats to f32, or only rounded to `types`.
struct GatedOut {
  MatrixView<float> f32;
  ActivationTypes types = {};
  RoundedRows* rounded = nullptr;
};

// Computes these panels of both matrices for some rows. Panel by panel, so that the results of both
// stay in the cache: reading twelve panels of gate and then twelve of up took 15% longer.
void gated_panels(const Kernels& kernels, const ThreadSlice& slice, const GatedProduct& product,
                  const Rows& x, Range panels, Range rows, const GatedOut& out);

}  // namespace stagecraft
