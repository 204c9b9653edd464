#pragma once

#include <span>

#include "tensor/stored_tensor.h"

namespace stagecraft {

// Whether read_row reads this type: F32, F16, BF16, or a type of dequantize.h.
bool is_readable(DType dtype);

// Converts a row of a stored matrix [rows, cols] to floats.
//
//   matrix  is_readable
//   row     less than rows
//   out     [cols]  written
//
// Throws Error if the type is another one, or if out has another size. May be called from several
// threads at once.
void read_row(const StoredTensor& matrix, std::size_t row, std::span<float> out);

}  // namespace stagecraft
