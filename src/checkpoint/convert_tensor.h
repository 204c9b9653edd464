#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "tensor/stored_tensor.h"

namespace stagecraft {

// Converts a tensor to another type, piece by piece, so that the whole result is never in memory.
// `sink` receives the bytes in order; they are valid only during the call. A tensor that already
// has the type is passed on unchanged; others are converted to f32 first (half_to_float.h,
// float_to_half.h, dequantize.h, quantize.h).
//
//   dtype   F32, F16, BF16, Q8_0, Q4_0 or Q4_1; or the tensor's own. If a block of dtype has n
//           elements, a row must have a multiple of n (fits_in)
//   where   the file, for errors
//   threads convert pieces at the same time; nullptr: the caller's thread alone. Only the caller's
//           thread calls `sink`
//
// Throws Error naming the tensor if its type cannot be converted, or if dtype cannot hold one of
// its numbers (then it also names the element).
void convert_tensor(const StoredTensor& tensor, DType dtype, const std::string& where,
                    const std::function<void(std::span<const std::byte>)>& sink,
                    ThreadPool* threads = nullptr);

// Whether each row consists of whole blocks of dtype. False for a scalar.
bool fits_in(const StoredTensor& tensor, DType dtype);

// How many bytes the tensor takes as dtype.
std::size_t bytes_as(const StoredTensor& tensor, DType dtype);

}  // namespace stagecraft
