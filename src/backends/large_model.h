#pragma once

#include "checkpoint/checkpoint.h"

namespace stagecraft {

// A model with more bytes of weights than this is large: backends may round its activations to
// bf16, on a GPU also to f16. This changes each activation by up to 1/256. Large models become
// faster and their text does not suffer. Small models are not rounded: they tell the same story on
// every processor.
inline constexpr std::size_t kLargeModelBytes = std::size_t{64} << 20;

// Whether the model has more than `bytes` bytes of weights.
inline bool is_large(const Checkpoint& checkpoint, std::size_t bytes = kLargeModelBytes) {
  std::size_t found = 0;
  for (const StoredTensor* tensor : checkpoint.tensors()) found += tensor->bytes.size();
  return found > bytes;
}

}  // namespace stagecraft
