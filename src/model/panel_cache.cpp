#include "model/panel_cache.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators/float_to_half.h"

namespace stagecraft {
namespace {

PanelMatrix keys_of(const Config& config, Form kind) {
  const std::size_t step = kind == Form::Q8 ? kQuantBlock : 1;
  const std::size_t inputs = round_up(config.head_dim, step);
  return {kind, PanelCache::kChunk, inputs, nullptr, panel_bytes(kind, inputs)};
}

PanelMatrix values_of(const Config& config, Form kind) {
  const Form form = kind == Form::Q8 ? Form::Q8ByInput : kind;
  return {form, config.head_dim, PanelCache::kChunk, nullptr,
          panel_bytes(form, PanelCache::kChunk)};
}

std::size_t bytes_of(const PanelMatrix& matrix) { return matrix.panel_count() * matrix.stride; }

// Floats into places `step` numbers apart.
void scatter(const float* values, std::size_t n, Form kind, std::byte* to, std::size_t step) {
  if (kind == Form::F32) {
    for (std::size_t i = 0; i < n; ++i) std::memcpy(to + i * step * 4, values + i, 4);
    return;
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t half;
    f32_to_f16({values + i, 1}, {&half, 1});
    std::memcpy(to + i * step * 2, &half, 2);
  }
}

// Up to 32 numbers as bytes and their scale.
struct Block {
  std::int8_t bytes[kQuantBlock];
  float scale;

  Block(const Kernels& kernels, const float* values, std::size_t n) {
    float filled[kQuantBlock] = {};
    std::copy_n(values, n, filled);
    std::int32_t sum;
    kernels.to_q8(filled, kQuantBlock, bytes, &scale, &sum);
  }
};

// As output `output` of a block of a Q8 panel: [8][32][4] bytes + 128, then [32] scales.
void put_key(const Block& block, std::size_t output, std::byte* to) {
  constexpr std::size_t kWords = kQuantBlock / 4;
  for (std::size_t w = 0; w < kWords; ++w) {
    std::uint32_t word;
    std::memcpy(&word, block.bytes + 4 * w, 4);
    word ^= 0x80808080u;  // + 128 in two's complement
    std::memcpy(to + (w * kPanelOutputs + output) * 4, &word, 4);
  }
  std::uint16_t scale;
  f32_to_f16({&block.scale, 1}, {&scale, 1});
  std::memcpy(to + kWords * kPanelOutputs * 4 + output * 2, &scale, 2);
}

// As an input of a Q8ByInput panel: its scale, then [32] bytes.
void put_value(const Block& block, std::byte* to) {
  std::memcpy(to, &block.scale, sizeof block.scale);
  std::memcpy(to + sizeof block.scale, block.bytes, sizeof block.bytes);
}

}  // namespace

PanelCache::PanelCache(const Config& config, std::size_t capacity, Form kind)
    : n_layers_(config.n_layers),
      n_kv_heads_(config.n_kv_heads),
      head_dim_(config.head_dim),
      keys_(keys_of(config, kind)),
      values_(values_of(config, kind)),
      capacity_(capacity),
      memory_(round_up(capacity, kChunk) / kChunk,
              n_layers_ * n_kv_heads_ * (bytes_of(keys_) + bytes_of(values_))) {}

std::size_t PanelCache::offset(std::size_t layer, std::size_t kv_head, std::size_t chunk) const {
  return ((chunk * n_layers_ + layer) * n_kv_heads_ + kv_head) *
         (bytes_of(keys_) + bytes_of(values_));
}

PanelMatrix PanelCache::keys(std::size_t layer, std::size_t kv_head, std::size_t chunk) const {
  PanelMatrix keys = keys_;
  keys.panels = memory_.data() + offset(layer, kv_head, chunk);
  return keys;
}

PanelMatrix PanelCache::values(std::size_t layer, std::size_t kv_head, std::size_t chunk,
                               std::size_t positions) const {
  PanelMatrix values = values_;
  values.inputs = positions;
  values.panels = memory_.data() + offset(layer, kv_head, chunk) + bytes_of(keys_);
  return values;
}

void PanelCache::put(const Kernels& kernels, std::size_t layer, std::size_t kv_head,
                     std::size_t position, const float* key, const float* value) {
  const std::size_t at = position % kChunk;
  const std::size_t output = at % kPanelOutputs;
  std::byte* const chunk = memory_.data() + offset(layer, kv_head, position / kChunk);
  std::byte* const keys = chunk + at / kPanelOutputs * keys_.stride;
  std::byte* const values = chunk + bytes_of(keys_) + panel_bytes(values_.form, at);
  for (std::size_t d = 0; d < head_dim_; d += kPanelOutputs) {
    const std::size_t n = std::min(kPanelOutputs, head_dim_ - d);
    std::byte* const k = keys + panel_bytes(keys_.form, d);
    std::byte* const v = values + d / kPanelOutputs * values_.stride;
    if (keys_.form == Form::Q8) {
      put_key(Block(kernels, key + d, n), output, k);
      put_value(Block(kernels, value + d, n), v);
    } else {
      const std::size_t number = panel_bytes(keys_.form, 1) / kPanelOutputs;
      scatter(key + d, n, keys_.form, k + output * number, kPanelOutputs);
      scatter(value + d, n, keys_.form, v, 1);
    }
  }
}

double panel_cache_bytes(const Config& config, std::size_t capacity, Form kind) {
  const auto count = [](std::size_t n) { return static_cast<double>(n); };
  const std::size_t chunk = bytes_of(keys_of(config, kind)) + bytes_of(values_of(config, kind));
  return std::ceil(count(capacity) / count(PanelCache::kChunk)) * count(config.n_layers) *
         count(config.n_kv_heads) * count(chunk);
}

}  // namespace stagecraft
