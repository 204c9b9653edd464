#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/kv_pages.h"
#include "model/placement.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {

// The keys and values of one sequence, stored like weights. The scores of a query are a product
// with a matrix whose outputs are positions; the result of attention is a product with a matrix
// whose inputs are positions. So both are stored as PanelMatrix, in chunks of 64 positions, and the
// kernels of the linear layers compute attention, too:
//
//   layout  keys [64, head_dim]   values [head_dim, 64]
//   F32     F32                   F32
//   F16     F16                   F16
//   BF16    RoundedBF16           RoundedBF16
//   Q8_0    Q8_0                  Q8ByInput
//
// Q8_0 rounds 32 neighbouring numbers of a key or a value to bytes that share a scale. In a matrix
// of keys these numbers are inputs, in a matrix of values outputs. So there are two layouts; both
// can store a position without reading others. In Q8_0 and BF16, heads are padded with zeros to a
// multiple of 32; zeros add nothing.
//
// The chunks of all layers and heads for the same 64 positions lie in one page. Caches of texts
// with the same beginning share pages. A cache copies a shared page before it writes into it.
class PackedKvCache {
 public:
  static constexpr std::size_t kChunk = 64;

  // shapes: one per cache of the plan. capacity: in positions. layout: how keys and values are
  // stored: F32, F16, RoundedBF16 or Q8_0. pages: the memory that caches of the same shapes and
  // layout share; null: this cache has its own, enough for its capacity. Throws std::bad_alloc.
  PackedKvCache(std::span<const CacheShape> shapes, std::size_t capacity, WeightLayout layout,
                std::shared_ptr<KvPages> pages = nullptr);

  std::size_t length() const { return length_; }
  std::size_t capacity() const { return capacity_; }

  PanelMatrix keys(CacheId cache, std::size_t kv_head, std::size_t chunk) const;
  // Of the first `positions` positions of the chunk.
  PanelMatrix values(CacheId cache, std::size_t kv_head, std::size_t chunk,
                     std::size_t positions) const;

  // Makes room for `length` positions, at most the capacity; those from length() on may then be
  // stored. Returns false if too few pages are free; some may have been taken. A cache with its own
  // pages has enough of them.
  bool reserve(std::size_t length);
  // Stores the key and the value of one head at one position, [head_dim] floats each; overwrites
  // older ones. There must be room for the position. The kernels round to f16, bf16 or bytes if the
  // layout needs it.
  void put(const Kernels& kernels, CacheId cache, std::size_t kv_head, std::size_t position,
           const float* key, const float* value);

  void advance(std::size_t count) { length_ += count; }
  // Becomes a copy of the first `length` positions of another cache of the same shapes and layout.
  // It shares the other's pages if both have the same KvPages, else it copies them. Returns false,
  // and changes nothing, if the other has fewer positions, if its text cannot be cut there
  // (Placement::kept), or if there is no room.
  bool copy(const PackedKvCache& other, std::size_t length);
  // Forgets every position from `length` on; more if the text cannot be cut there
  // (Placement::kept).
  void truncate(std::size_t length);

  Placement placement;  // of the text; cpu_pass writes it when a text begins

 private:
  struct Layer {
    std::size_t head_dim;
    std::size_t offset;        // of its first head in a page
    PanelMatrix keys, values;  // of any chunk; `panels` is not set
  };
  const Layer& layer(CacheId cache) const { return layers_[static_cast<std::size_t>(cache)]; }
  // The address of the keys of a chunk; its values follow.
  std::byte* chunk_of(const Layer& layer, std::size_t kv_head, std::size_t chunk) const;

  WeightLayout layout_;
  std::vector<Layer> layers_;
  std::size_t capacity_;
  std::size_t length_ = 0;
  std::shared_ptr<KvPages> memory_;
  std::vector<KvPages::Page> pages_;  // one per 64 positions that have room
};

// The pages that caches of `capacity` positions share: enough for n full caches.
std::shared_ptr<KvPages> make_kv_pages(std::span<const CacheShape> shapes, std::size_t capacity,
                                       WeightLayout layout, std::size_t n);

// The bytes of a full cache of `capacity` positions.
double packed_kv_cache_bytes(std::span<const CacheShape> shapes, std::size_t capacity,
                             WeightLayout layout);

}  // namespace stagecraft
