#pragma once

#include <cstddef>
#include <random>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// Whether only other programs write this type, so that tests make blocks of it from random bytes.
inline bool has_no_writer(DType dtype) {
  return is_quantized(dtype) && dtype != DType::Q8_0 && dtype != DType::Q4_0 &&
         dtype != DType::Q4_1;
}

// Fills whole blocks with random bytes. Any bytes are a block, but scales must be small: such that
// the elements are about 1.
inline void fill_blocks(DType dtype, std::span<std::byte> blocks, std::mt19937& random) {
  const auto [elements, size] = dtype_block(dtype);
  const bool scale_last = dtype == DType::Q3_K || dtype == DType::Q6_K;
  const bool has_minimum = dtype == DType::Q4_K || dtype == DType::Q5_K;
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < blocks.size(); i += size) {
    if (dtype == DType::MXFP4) {  // an exponent
      blocks[i] = static_cast<std::byte>(120 + i % 13);
      continue;
    }
    // The high byte of an f16. In a block of 256 the scale is multiplied with a smaller one's
    // number.
    blocks[i + (scale_last ? size - 1 : 1)] = elements == 256 ? std::byte{0x14} : std::byte{0x1c};
    if (has_minimum) blocks[i + 3] = std::byte{0x20};
  }
}

}  // namespace stagecraft
