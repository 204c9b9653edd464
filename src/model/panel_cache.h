#pragma once

#include "model/config.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The least multiple of `step` that n fits into.
constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

// Keys and values of one sequence as the fast path keeps them: as weights. The scores of a query
// are a product with a matrix whose outputs are positions; what attention returns is one with a
// matrix whose inputs are positions. So both lie in panels (see PanelMatrix), in chunks of 64
// positions:
//
//   keys    [2][head_dim][32]               two panels of 32 positions each
//   values  [ceil(head_dim / 32)][64][32]   panels of 32 numbers of the head each
//
// and the kernels of the linear layers serve attention too. Chunks of all layers and heads lie one
// after the other, so memory grows by one row of chunks every 64 positions: pages that no position
// has reached are never touched.
class PanelCache {
 public:
  static constexpr std::size_t kChunk = 64;

  // kind: F32 or F16, how keys and values are kept. capacity: in positions.
  PanelCache(const Config& config, std::size_t capacity, Form kind);

  std::size_t length() const { return length_; }
  std::size_t capacity() const { return capacity_; }
  Form kind() const { return kind_; }

  std::byte* keys(std::size_t layer, std::size_t kv_head, std::size_t chunk) {
    return memory_.data() + ((chunk * n_layers_ + layer) * n_kv_heads_ + kv_head) * stride_;
  }
  std::byte* values(std::size_t layer, std::size_t kv_head, std::size_t chunk) {
    return keys(layer, kv_head, chunk) + keys_bytes_;
  }
  // Bytes from a panel of a chunk's keys, or values, to the next.
  std::size_t keys_panel() const { return keys_bytes_ / 2; }
  std::size_t values_panel() const { return kChunk * kPanelOutputs * size_; }

  // Stores one position's key and value of one head: [head_dim] floats each.
  void put(std::size_t layer, std::size_t kv_head, std::size_t position, const float* key,
           const float* value);

  void advance(std::size_t count) { length_ += count; }
  void truncate(std::size_t length) { length_ = length < length_ ? length : length_; }

 private:
  Form kind_;
  std::size_t size_;  // bytes of a number
  std::size_t n_layers_, n_kv_heads_, head_dim_;
  std::size_t keys_bytes_, stride_;  // of a chunk: its keys; keys and values
  std::size_t capacity_;
  std::size_t length_ = 0;
  Matrix<std::byte> memory_;
};

// The bytes that a cache for `capacity` positions comes to use.
double panel_cache_bytes(const Config& config, std::size_t capacity, Form kind);

}  // namespace stagecraft
