#pragma once

#include "model/config.h"
#include "operators/kernels/panel_matrix.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The least multiple of `step` that n fits into.
constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

// Keys and values of one sequence as the fast path keeps them: as weights. The scores of a query
// are a product with a matrix whose outputs are positions; what attention returns is one with a
// matrix whose inputs are positions. So both are a PanelMatrix, in chunks of 64 positions, and the
// kernels of the linear layers serve attention too:
//
//   kind   keys [64, head_dim]   values [head_dim, 64]
//   F32    F32                   F32
//   F16    F16                   F16
//   Q8     Q8                    Q8ByInput
//
// Q8 rounds 32 neighbouring numbers of a key or a value to bytes that share a scale. To a matrix
// of keys those are inputs, to a matrix of values outputs: hence the two forms, both of which store
// a position without looking at another. A head that is no multiple of 32 is filled up with zeros,
// which add nothing.
//
// Chunks of all layers and heads lie one after the other, so memory grows by one row of chunks
// every 64 positions: pages that no position has reached are never touched.
class PanelCache {
 public:
  static constexpr std::size_t kChunk = 64;

  // kind: F32, F16 or Q8, how keys and values are kept. capacity: in positions.
  PanelCache(const Config& config, std::size_t capacity, Form kind);

  std::size_t length() const { return length_; }
  std::size_t capacity() const { return capacity_; }
  Form kind() const { return keys_.form; }

  PanelMatrix keys(std::size_t layer, std::size_t kv_head, std::size_t chunk) const;
  // Of the chunk's first `positions`.
  PanelMatrix values(std::size_t layer, std::size_t kv_head, std::size_t chunk,
                     std::size_t positions) const;

  // Stores one position's key and value of one head, [head_dim] floats each, over what may stand
  // there. Kernels round to bytes where the kind asks for it.
  void put(const Kernels& kernels, std::size_t layer, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  void advance(std::size_t count) { length_ += count; }
  void truncate(std::size_t length) { length_ = length < length_ ? length : length_; }

 private:
  // Where a chunk lies.
  std::size_t offset(std::size_t layer, std::size_t kv_head, std::size_t chunk) const;

  std::size_t n_layers_, n_kv_heads_, head_dim_;
  PanelMatrix keys_, values_;  // of any chunk, but for where its panels lie
  std::size_t capacity_;
  std::size_t length_ = 0;
  Matrix<std::byte> memory_;
};

// The bytes that a cache for `capacity` positions comes to use.
double panel_cache_bytes(const Config& config, std::size_t capacity, Form kind);

}  // namespace stagecraft
