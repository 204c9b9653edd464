#include "model/panel_cache.h"

#include <cstring>

#include "operators/narrow.h"

namespace stagecraft {
namespace {

std::size_t number_size(Form kind) { return kind == Form::F16 ? 2 : 4; }

// Floats into places `step` numbers apart.
void scatter(const float* values, std::size_t n, Form kind, std::byte* to, std::size_t step) {
  if (kind == Form::F32) {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * step * 4, values + i, 4);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half;
    narrow_f16({values + i, 1}, {&half, 1});
    std::memcpy(to + i * step * 2, &half, 2);
  }
}

}  // namespace

PanelCache::PanelCache(const Config& config, std::size_t capacity, Form kind)
    : kind_(kind),
      size_(number_size(kind)),
      n_layers_(config.n_layers),
      n_kv_heads_(config.n_kv_heads),
      head_dim_(config.head_dim),
      keys_bytes_(kChunk * head_dim_ * size_),
      stride_(keys_bytes_ + kChunk * round_up(head_dim_, kPanelOutputs) * size_),
      capacity_(capacity),
      memory_(round_up(capacity, kChunk) / kChunk, n_layers_ * n_kv_heads_ * stride_) {}

void PanelCache::put(std::size_t layer, std::size_t kv_head, std::size_t position, const float* key,
                     const float* value) {
  const std::size_t chunk = position / kChunk;
  const std::size_t at = position % kChunk;
  std::byte* k = keys(layer, kv_head, chunk) + at / kPanelOutputs * keys_panel();
  scatter(key, head_dim_, kind_, k + at % kPanelOutputs * size_, kPanelOutputs);
  std::byte* v = values(layer, kv_head, chunk) + at * kPanelOutputs * size_;
  for (std::size_t d = 0; d < head_dim_; d += kPanelOutputs, v += values_panel()) {
    scatter(value + d, std::min(kPanelOutputs, head_dim_ - d), kind_, v, 1);
  }
}

double panel_cache_bytes(const Config& config, std::size_t capacity, Form kind) {
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  const std::size_t width = config.head_dim + round_up(config.head_dim, kPanelOutputs);
  return count(round_up(capacity, PanelCache::kChunk)) * count(config.n_layers) *
         count(config.n_kv_heads) * count(width) * count(number_size(kind));
}

}  // namespace stagecraft
