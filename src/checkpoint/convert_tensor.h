#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/thread_pool.h"
#include "checkpoint/stored_tensor.h"

namespace stagecraft {

// A tensor's elements in another type, piece by piece, so that no whole tensor has to be in memory:
// `sink` is called with the bytes in order. A tensor that has the type already is passed on bit for
// bit; others go through f32 (half_to_float.h, float_to_half.h, dequantize.h, quantize.h).
//
//   dtype   F32, F16, BF16, Q8_0, Q4_0 or Q4_1; or the tensor's own. For blocks of n elements a row
//           must be a multiple of n (fits_in)
//   where   the file, for errors
//   threads convert pieces at the same time; nullptr: the caller's thread alone. Only the caller's
//           thread calls `sink`
//
// Throws Error naming the tensor and the element where a number is beyond what dtype can hold.
void convert_tensor(const StoredTensor& tensor, DType dtype, const std::string& where,
                    const std::function<void(std::span<const std::byte>)>& sink,
                    ThreadPool* threads = nullptr);

// Whether each row consists of whole blocks of dtype.
bool fits_in(const StoredTensor& tensor, DType dtype);

// How many bytes the tensor takes as dtype.
std::size_t bytes_as(const StoredTensor& tensor, DType dtype);

}  // namespace stagecraft
