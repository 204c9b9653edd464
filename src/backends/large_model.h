#pragma once

#include "checkpoint/checkpoint.h"

namespace stagecraft {

// Models with more bytes of weights than this are large: activations may be rounded to bf16, on a
// GPU also to f16. That changes each by up to one part in 256. Large models gain speed from it and
// their text does not suffer; small models tell the same story on every processor without it.
inline constexpr std::size_t kLargeModelBytes = std::size_t{64} << 20;

// Whether the model has more than so many bytes of weights.
inline bool is_large(const Checkpoint& checkpoint, std::size_t bytes = kLargeModelBytes) {
  std::size_t found = 0;
  for (const StoredTensor* tensor : checkpoint.tensors()) found += tensor->bytes.size();
  return found > bytes;
}

}  // namespace stagecraft
