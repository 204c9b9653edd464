#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// Whether the engine cannot write this type. Tests then make its blocks from random bytes.
inline bool has_no_writer(DType dtype) {
  return is_quantized(dtype) && dtype != DType::Q8_0 && dtype != DType::Q4_0 &&
         dtype != DType::Q4_1;
}

// Fills whole blocks with random bytes. Any bytes form a valid block, but the scales are made
// small, so that the elements are about 1.
inline void fill_blocks(DType dtype, std::span<std::byte> blocks, std::mt19937& random) {
  const auto [elements, size] = dtype_block(dtype);
  const bool scale_last = dtype == DType::Q3_K || dtype == DType::Q6_K;
  const bool has_minimum =
      dtype == DType::Q5_1 || dtype == DType::Q2_K || dtype == DType::Q4_K || dtype == DType::Q5_K;
  for (std::byte& byte : blocks) byte = static_cast<std::byte>(random());
  for (std::size_t i = 0; i < blocks.size(); i += size) {
    if (dtype == DType::MXFP4) {  // the scale is an exponent
      blocks[i] = static_cast<std::byte>(120 + i % 13);
      continue;
    }
    if (dtype == DType::Q8_K) {  // the scale is a float
      constexpr float kScale = 0x1p-6f;
      std::memcpy(&blocks[i], &kScale, sizeof kScale);
      continue;
    }
    // The high byte of the scale, an f16. In a block of 256, the scale is also multiplied by the
    // integer scale of a smaller block.
    const std::size_t at = i + (dtype == DType::Q2_K ? 80 : scale_last ? size - 2 : 0);
    blocks[at + 1] = elements == 256 ? std::byte{0x14} : std::byte{0x1c};
    if (has_minimum) blocks[at + 3] = std::byte{0x20};
  }
}

}  // namespace stagecraft
