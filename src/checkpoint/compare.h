#pragma once

#include <cstddef>

#include "tensor/stored_tensor.h"

namespace stagecraft {

// How far two numbers may lie apart and still count as the same:
//   |a - b| <= absolute + relative * max(|a|, |b|, rms)
// rms is the root mean square of their row (along the last dimension), the smaller of both sides.
// It is needed because the rounding error of a sum depends on its terms, not on its result: a small
// number in a row of large ones is no more exact than they are. On a real model, two correct f32
// implementations differ by 4 times what the defaults allow without rms, and by a fifth of what
// they allow with it.
//
// Neither side is the reference, so swapping them changes nothing. Equal infinities are the same.
// NaN is the same as NaN (both sides broke in the same place) and differs from every number.
struct Tolerance {
  double relative = 1e-4;
  double absolute = 1e-5;
};

// Two numbers at the same place of two tensors.
struct Gap {
  std::size_t index = 0;  // counted row-major from 0
  double a = 0.0;
  double b = 0.0;
  double allowed = 0.0;

  double size() const;  // |a - b|; 0 if both are NaN or the same infinity, infinity if one is NaN
  bool differs() const;
};

struct Comparison {
  std::size_t count = 0;      // elements of each tensor
  std::size_t differing = 0;  // elements whose gap exceeds the tolerance
  std::size_t nan_a = 0;      // elements that are NaN
  std::size_t nan_b = 0;
  Gap first;  // the first element that differs; meaningless if none differs
  Gap worst;  // the largest gap; if any element differs, the largest among those that do
};

// Compares element by element, in f64. F64, F32, F16 and BF16 may be compared with each other.
// Throws Error naming the tensor if a dtype is none of these, or if the shapes disagree.
Comparison compare_tensors(const StoredTensor& a, const StoredTensor& b, Tolerance tolerance);

}  // namespace stagecraft
