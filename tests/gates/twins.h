#pragma once

#include "tests/gates/gate.h"

namespace stagecraft::stages {

// The staged functions in f64, for questions made on the spot. The allowance follows from f32
// arithmetic: a sum of n products, in any order, is off by at most n * 2^-24 * sum(|products|)
// (Higham 2002, section 3.1); a few roundings and a libm's exp add a few units in the last place.
Expected twin_add(const Tensor& x, const Tensor& y);
Expected twin_silu(const Tensor& x);
Expected twin_swiglu(const Tensor& gate, const Tensor& up);
Expected twin_rms_norm(const Tensor& x, const Tensor& weight, double eps);
Expected twin_matmul_transb(double alpha, const Tensor& a, const Tensor& b, double beta,
                            const Tensor& c);

}  // namespace stagecraft::stages
