#include <algorithm>

#include "backends/cuda/cuda_backend.h"
#include "operators/cuda/operators.h"

namespace stagecraft {

SequenceBytes cuda_bytes(const Plan& plan, KvType type, std::size_t context) {
  double cached = 0.0, row = 0.0;  // numbers per position, and per row of a pass
  for (const CacheShape& shape : plan.caches) cached += 2.0 * static_cast<double>(shape.width());
  for (const Buffer& buffer : plan.buffers) row += cuda::padded(buffer.width);
  const double rows = static_cast<double>(std::min(cuda::kMostRows, context));
  return {(type == KvType::F16 ? 2.0 : 4.0) * cached * static_cast<double>(context),
          sizeof(float) * row * rows};
}

}  // namespace stagecraft
