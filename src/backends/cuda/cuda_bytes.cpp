#include "backends/cuda/cuda_bytes.h"

#include <algorithm>

#include "backends/cuda/cuda_backend.h"
#include "backends/sequence_state.h"
#include "base/error.h"
#include "model/placement.h"

namespace stagecraft {

cuda::CacheType cuda::cache_type(KvType type) {
  if (type == KvType::Q8_0) return CacheType::Q8_0;
  if (type == KvType::BF16) {
    throw Error("keys and values on a GPU: expected f32, f16 or q8_0, found bf16");
  }
  return type == KvType::F16 ? CacheType::F16 : CacheType::F32;
}

cuda::RowSizes cuda::sizes_of_row(const Plan& plan) {
  RowSizes row;
  for (const Buffer& buffer : plan.buffers) row.buffers += padded(buffer.width);
  const auto grow = [](std::size_t& size, std::size_t to) { size = std::max(size, to); };
  for (const Step& step : plan.steps) {
    if (const auto* linear = std::get_if<LinearStep>(&step.kind)) {
      grow(row.input, padded(plan.buffer(linear->in).width));
    }
    if (const auto* select = std::get_if<SelectStep>(&step.kind)) {
      row.selected += padded(plan.buffer(select->x).width);
    }
    if (const auto* experts = std::get_if<ExpertsStep>(&step.kind)) {
      const std::size_t chosen = most_chosen(plan, *experts);
      grow(row.chosen, chosen);
      grow(row.inside, chosen * padded(expert_width(plan, *experts)));
      grow(row.down, chosen * padded(plan.buffer(experts->out).width));
    }
  }
  return row;
}

SequenceBytes cuda_bytes(const Plan& plan, KvType type, std::size_t context) {
  double cached = 0.0;  // bytes per position
  for (const CacheShape& shape : plan.caches) {
    cached += 2.0 * static_cast<double>(cuda::cached_bytes(cuda::cache_type(type), shape.n_kv_heads,
                                                           shape.head_dim));
  }
  const cuda::RowSizes row = cuda::sizes_of_row(plan);
  const std::size_t halves = row.input * sizeof(unsigned short) +
                             (1 + row.input / cuda::kRowUnit) * sizeof(float);  // see HalfRows
  const std::size_t row_bytes =
      (row.buffers + row.selected + 2 * row.inside + row.down) * sizeof(float) + halves +
      (row.chosen + cuda::kRowTables + 1) * sizeof(int);  // + 1: the likeliest token
  const std::size_t rows = pass_rows(plan, cuda::kMostRows, context);
  return {cached * static_cast<double>(context) + sequence_state_bytes(plan),
          static_cast<double>(row_bytes) * static_cast<double>(rows)};
}

}  // namespace stagecraft
