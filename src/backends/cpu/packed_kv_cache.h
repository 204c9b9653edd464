#pragma once

#include <span>
#include <vector>

#include "base/round_up.h"
#include "model/placement.h"
#include "operators/kernels/panel_matrix.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Keys and values of one sequence as the CPU backend keeps them: as weights. The scores of a query
// are a product with a matrix whose outputs are positions; the result of attention is a product
// with a matrix whose inputs are positions. So both are a PanelMatrix, in chunks of 64 positions,
// and the kernels of the linear layers serve attention too:
//
//   kind   keys [64, head_dim]   values [head_dim, 64]
//   F32    F32                   F32
//   F16    F16                   F16
//   Q8     Q8                    Q8ByInput
//
// Q8 rounds 32 neighbouring numbers of a key or a value to bytes that share a scale. In a matrix of
// keys these are inputs, in a matrix of values outputs: hence two layouts, both of which store a
// position without reading another. A head that is no multiple of 32 is padded with zeros, which
// add nothing.
//
// Chunks of all layers and heads lie one after the other, so memory grows by one row of chunks per
// 64 positions: pages that no position has reached are never touched.
class PackedKvCache {
 public:
  static constexpr std::size_t kChunk = 64;

  // shapes: one per cache of the plan. capacity: in positions. kind: F32, F16 or Q8, how keys and
  // values are kept.
  PackedKvCache(std::span<const CacheShape> shapes, std::size_t capacity, WeightLayout kind);

  std::size_t length() const { return length_; }
  std::size_t capacity() const { return capacity_; }
  WeightLayout kind() const { return kind_; }

  PanelMatrix keys(CacheId cache, std::size_t kv_head, std::size_t chunk) const;
  // Of the chunk's first `positions`.
  PanelMatrix values(CacheId cache, std::size_t kv_head, std::size_t chunk,
                     std::size_t positions) const;

  // Stores one position's key and value of one head, [head_dim] floats each, over what may stand
  // there. Kernels round to bytes where the kind asks for it.
  void put(const Kernels& kernels, CacheId cache, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  void advance(std::size_t count) { length_ += count; }
  // Becomes the first `length` positions of another cache of the same shapes and kind. False, and
  // no change, if it has no such positions, may not keep them alone, or there is no room for them.
  bool copy(const PackedKvCache& other, std::size_t length);
  // Keeps fewer where the placement says so.
  void truncate(std::size_t length) {
    if (length < length_) length_ = placement.kept(length);
  }

  Placement placement;  // of the text; cpu_pass writes it where a text begins

 private:
  struct Layer {
    std::size_t head_dim;
    std::size_t offset;        // of its first head in a row of chunks
    PanelMatrix keys, values;  // of any chunk, but for where its panels lie
  };
  const Layer& layer(CacheId cache) const { return layers_[static_cast<std::size_t>(cache)]; }
  // Where the keys of a chunk begin; its values follow.
  std::size_t offset(const Layer& layer, std::size_t kv_head, std::size_t chunk) const;

  WeightLayout kind_;
  std::vector<Layer> layers_;
  std::size_t row_bytes_ = 0;  // of one chunk of all layers and heads
  std::size_t capacity_;
  std::size_t length_ = 0;
  Matrix<std::byte> memory_;
};

// The bytes that a cache for `capacity` positions comes to use.
double packed_kv_cache_bytes(std::span<const CacheShape> shapes, std::size_t capacity,
                             WeightLayout kind);

}  // namespace stagecraft
