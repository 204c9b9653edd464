#pragma once

#include <span>

#include "tensor/stored_tensor.h"

namespace stagecraft {

// Converts a row of a stored matrix [rows, cols] to floats.
//
//   matrix  F32, F16, BF16, or a type of dequantize.h
//   row     less than rows
//   out     [cols]  written
//
// Throws Error if the type is another one, or if out has another size.
void read_row(const StoredTensor& matrix, std::size_t row, std::span<float> out);

}  // namespace stagecraft
