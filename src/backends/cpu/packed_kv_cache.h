#pragma once

#include <span>
#include <vector>

#include "backends/cpu/kv_pages.h"
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
//   BF16   RoundedBF16           RoundedBF16
//   Q8     Q8                    Q8ByInput
//
// Q8 rounds 32 neighbouring numbers of a key or a value to bytes that share a scale. In a matrix of
// keys these are inputs, in a matrix of values outputs: hence two layouts, both of which store a
// position without reading another. Of Q8 and BF16, a head that is no multiple of 32 is padded with
// zeros, which add nothing.
//
// The chunks of all layers and heads for the same 64 positions lie in one page. Caches of texts
// with the same beginning hold the same pages; the first of them that writes into such a page
// copies it.
class PackedKvCache {
 public:
  static constexpr std::size_t kChunk = 64;

  // shapes: one per cache of the plan. capacity: in positions. kind: F32, F16, RoundedBF16 or Q8,
  // how keys and values are kept. pages: that other caches of the same shapes and kind hold, too;
  // null: this cache has its own, as many as it can need. Throws std::bad_alloc.
  PackedKvCache(std::span<const CacheShape> shapes, std::size_t capacity, WeightLayout kind,
                std::shared_ptr<KvPages> pages = nullptr);

  std::size_t length() const { return length_; }
  std::size_t capacity() const { return capacity_; }
  WeightLayout kind() const { return kind_; }

  PanelMatrix keys(CacheId cache, std::size_t kv_head, std::size_t chunk) const;
  // Of the chunk's first `positions`.
  PanelMatrix values(CacheId cache, std::size_t kv_head, std::size_t chunk,
                     std::size_t positions) const;

  // Makes room for the positions below `length`, at most the capacity, of which those from length()
  // on may be stored then. False if no page is left; some may have been taken. Pages of the cache's
  // own are always enough.
  bool reserve(std::size_t length);
  // Stores one position's key and value of one head, [head_dim] floats each, over what may stand
  // there. There is room for the position. Kernels round to bytes where the kind asks for it.
  void put(const Kernels& kernels, CacheId cache, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  void advance(std::size_t count) { length_ += count; }
  // Becomes the first `length` positions of another cache of the same shapes and kind, whose pages
  // it holds then; if the pages are not shared, it copies them. False, and no change, if the other
  // has no such positions, may not keep them alone, or there is no room for them.
  bool copy(const PackedKvCache& other, std::size_t length);
  // Keeps fewer where the placement says so.
  void truncate(std::size_t length);

  Placement placement;  // of the text; cpu_pass writes it where a text begins

 private:
  struct Layer {
    std::size_t head_dim;
    std::size_t offset;        // of its first head in a page
    PanelMatrix keys, values;  // of any chunk, but for where its panels lie
  };
  const Layer& layer(CacheId cache) const { return layers_[static_cast<std::size_t>(cache)]; }
  // Where the keys of a chunk begin; its values follow.
  std::byte* chunk_of(const Layer& layer, std::size_t kv_head, std::size_t chunk) const;

  WeightLayout kind_;
  std::vector<Layer> layers_;
  std::size_t capacity_;
  std::size_t length_ = 0;
  std::shared_ptr<KvPages> memory_;
  std::vector<KvPages::Page> pages_;  // one per 64 positions that there is room for
};

// The pages that caches of `capacity` positions share, where `n` of them may be full.
std::shared_ptr<KvPages> make_kv_pages(std::span<const CacheShape> shapes, std::size_t capacity,
                                       WeightLayout kind, std::size_t n);

// The bytes that a cache for `capacity` positions comes to use.
double packed_kv_cache_bytes(std::span<const CacheShape> shapes, std::size_t capacity,
                             WeightLayout kind);

}  // namespace stagecraft
