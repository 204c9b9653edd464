#include "backends/cuda/cuda_backend.h"
#include "backends/sequence_state.h"
#include "base/error.h"
#include "model/placement.h"
#include "operators/cuda/operators.h"

namespace stagecraft {

cuda::CacheType cuda::cache_type(KvType type) {
  if (type == KvType::Q8_0) return CacheType::Q8_0;
  if (type == KvType::BF16) {
    throw Error("keys and values on a GPU: expected f32, f16 or q8_0, found bf16");
  }
  return type == KvType::F16 ? CacheType::F16 : CacheType::F32;
}

SequenceBytes cuda_bytes(const Plan& plan, KvType type, std::size_t context) {
  double cached = 0.0, row = 0.0;  // bytes per position, and numbers per row of a pass
  for (const CacheShape& shape : plan.caches) {
    cached += 2.0 * static_cast<double>(cuda::cached_bytes(cuda::cache_type(type), shape.n_kv_heads,
                                                           shape.head_dim));
  }
  for (const Buffer& buffer : plan.buffers) row += cuda::padded(buffer.width);
  const auto rows = static_cast<double>(pass_rows(plan, cuda::kMostRows, context));
  return {cached * static_cast<double>(context) + sequence_state_bytes(plan),
          sizeof(float) * row * rows};
}

}  // namespace stagecraft
