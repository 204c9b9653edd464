#include "backends/cpu/packed_kv_cache.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/round_up.h"
#include "operators/float_to_half.h"

namespace stagecraft {
namespace {

PanelMatrix keys_of(const CacheShape& shape, WeightLayout layout) {
  const bool padded = layout == WeightLayout::Q8_0 || layout == WeightLayout::RoundedBF16;
  const std::size_t inputs = round_up(shape.head_dim, padded ? kQuantBlock : 1);
  return {layout, PackedKvCache::kChunk, inputs, nullptr, panel_bytes(layout, inputs)};
}

PanelMatrix values_of(const CacheShape& shape, WeightLayout layout) {
  const WeightLayout by_input = layout == WeightLayout::Q8_0 ? WeightLayout::Q8ByInput : layout;
  return {by_input, shape.head_dim, PackedKvCache::kChunk, nullptr,
          panel_bytes(by_input, PackedKvCache::kChunk)};
}

std::size_t bytes_of(const PanelMatrix& matrix) { return matrix.panel_count() * matrix.stride; }

// Keys and values of one head.
std::size_t chunk_bytes(const CacheShape& shape, WeightLayout layout) {
  return bytes_of(keys_of(shape, layout)) + bytes_of(values_of(shape, layout));
}

// A chunk of all layers and heads.
std::size_t page_bytes(std::span<const CacheShape> shapes, WeightLayout layout) {
  std::size_t bytes = 0;
  for (const CacheShape& shape : shapes) bytes += shape.n_kv_heads * chunk_bytes(shape, layout);
  return bytes;
}

std::size_t pages_for(std::size_t positions) {
  return round_up(positions, PackedKvCache::kChunk) / PackedKvCache::kChunk;
}

// The index of the number of an input and an output in a panel without blocks.
template <WeightLayout kLayout>
constexpr std::size_t place(std::size_t input, std::size_t output) {
  if (kLayout != WeightLayout::RoundedBF16) return input * kPanelOutputs + output;
  return (input / 2 * kPanelOutputs + output) * 2 + input % 2;
}

// Writes up to 32 numbers in the format of such a panel; number i goes to place_of(i). The layout
// is a template parameter, so that the loops contain only a load and a store.
template <WeightLayout kLayout, class PlaceOf>
void put_numbers(const Kernels& kernels, std::span<const float> numbers, std::byte* panel,
                 PlaceOf place_of) {
  const auto put_all = [&](auto* from) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::memcpy(panel + place_of(i) * sizeof *from, from + i, sizeof *from);
    }
  };
  if constexpr (kLayout == WeightLayout::F32) {
    put_all(numbers.data());
  } else {
    std::uint16_t halves[kPanelOutputs];
    const auto round = kLayout == WeightLayout::F16 ? kernels.to_f16 : kernels.to_bf16;
    round(numbers.data(), numbers.size(), halves);
    put_all(halves);
  }
}

// Writes a key as output `output` of its panel, and a value as input `input` of its panels.
template <WeightLayout kLayout>
void put_position(const Kernels& kernels, std::span<const float> key, std::span<const float> value,
                  std::size_t output, std::size_t input, std::byte* keys, std::byte* values,
                  std::size_t value_stride) {
  for (std::size_t d = 0; d < key.size(); d += kPanelOutputs, values += value_stride) {
    const std::size_t n = std::min(kPanelOutputs, key.size() - d);
    put_numbers<kLayout>(kernels, key.subspan(d, n), keys,
                         [&](std::size_t i) { return place<kLayout>(d + i, output); });
    put_numbers<kLayout>(kernels, value.subspan(d, n), values,
                         [&](std::size_t i) { return place<kLayout>(input, i); });
  }
}

// Up to 32 numbers rounded to bytes, and their scale.
struct Block {
  std::int8_t bytes[kQuantBlock];
  float scale;

  Block(const Kernels& kernels, const float* values, std::size_t n) {
    float filled[kQuantBlock] = {};
    std::copy_n(values, n, filled);
    BlockSums sums;
    kernels.to_q8(filled, kQuantBlock, bytes, &scale, &sums);
  }
};

// Writes it as output `output` of a block of a Q8_0 panel: [8][32][4] bytes + 128, then [32]
// scales.
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

// Writes it as an input of a Q8ByInput panel: its scale, then [32] bytes.
void put_value(const Block& block, std::byte* to) {
  std::memcpy(to, &block.scale, sizeof block.scale);
  std::memcpy(to + sizeof block.scale, block.bytes, sizeof block.bytes);
}

}  // namespace

PackedKvCache::PackedKvCache(std::span<const CacheShape> shapes, std::size_t capacity,
                             WeightLayout layout, std::shared_ptr<KvPages> pages)
    : layout_(layout),
      capacity_(capacity),
      memory_(pages ? std::move(pages) : make_kv_pages(shapes, capacity, layout, 1)) {
  std::size_t offset = 0;
  for (const CacheShape& shape : shapes) {
    layers_.push_back({shape.head_dim, offset, keys_of(shape, layout), values_of(shape, layout)});
    offset += shape.n_kv_heads * chunk_bytes(shape, layout);
  }
  pages_.reserve(pages_for(capacity));  // a pass allocates nothing
}

bool PackedKvCache::reserve(std::size_t length) {
  if (length <= length_ || memory_->page_bytes() == 0) return true;
  // Other caches may share the page of the next position.
  const std::size_t next = length_ / kChunk;
  if (next < pages_.size() && pages_[next].is_shared()) {
    KvPages::Page copy = memory_->take();
    if (!copy) return false;
    std::memcpy(copy.data(), pages_[next].data(), memory_->page_bytes());
    pages_[next] = std::move(copy);
  }
  while (pages_.size() < pages_for(length)) {
    KvPages::Page page = memory_->take();
    if (!page) return false;
    // A sum over an odd number of positions reads the next one, too, times 0: it must not be NaN.
    if (layout_ == WeightLayout::RoundedBF16) std::memset(page.data(), 0, memory_->page_bytes());
    pages_.push_back(std::move(page));
  }
  return true;
}

bool PackedKvCache::copy(const PackedKvCache& other, std::size_t length) {
  if (length > other.length_ || length > capacity_) return false;
  if (other.placement.kept(length) != length) return false;
  const std::size_t n = std::min(pages_for(length), other.pages_.size());
  if (memory_ == other.memory_) {
    pages_.assign(other.pages_.begin(), other.pages_.begin() + static_cast<std::ptrdiff_t>(n));
  } else {
    const auto own = [](const KvPages::Page& page) { return !page.is_shared(); };
    if (memory_->n_free() + static_cast<std::size_t>(std::ranges::count_if(pages_, own)) < n) {
      return false;
    }
    length_ = 0;
    pages_.clear();
    reserve(length);
    for (std::size_t i = 0; i < n; ++i) {
      std::memcpy(pages_[i].data(), other.pages_[i].data(), memory_->page_bytes());
    }
  }
  length_ = length;
  placement = other.placement;
  return true;
}

void PackedKvCache::truncate(std::size_t length) {
  if (length < length_) length_ = placement.kept(length);
  // After a pass that failed, pages may be reserved that no position uses.
  pages_.resize(std::min(pages_.size(), pages_for(length_)));
}

std::byte* PackedKvCache::chunk_of(const Layer& layer, std::size_t kv_head,
                                   std::size_t chunk) const {
  return pages_[chunk].data() + layer.offset +
         kv_head * (bytes_of(layer.keys) + bytes_of(layer.values));
}

PanelMatrix PackedKvCache::keys(CacheId cache, std::size_t kv_head, std::size_t chunk) const {
  const Layer& one = layer(cache);
  PanelMatrix keys = one.keys;
  keys.panels = chunk_of(one, kv_head, chunk);
  return keys;
}

PanelMatrix PackedKvCache::values(CacheId cache, std::size_t kv_head, std::size_t chunk,
                                  std::size_t positions) const {
  const Layer& one = layer(cache);
  PanelMatrix values = one.values;
  values.inputs = layout_ == WeightLayout::RoundedBF16 ? round_up(positions, 2) : positions;
  values.panels = chunk_of(one, kv_head, chunk) + bytes_of(one.keys);
  return values;
}

void PackedKvCache::put(const Kernels& kernels, CacheId cache, std::size_t kv_head,
                        std::size_t position, const float* key, const float* value) {
  const Layer& one = layer(cache);
  const std::size_t at = position % kChunk;
  const std::size_t output = at % kPanelOutputs;
  std::byte* const chunk = chunk_of(one, kv_head, position / kChunk);
  std::byte* const keys = chunk + at / kPanelOutputs * one.keys.stride;
  std::byte* const values = chunk + bytes_of(one.keys);
  const auto put_as = [&](auto put_position_of_kind) {
    put_position_of_kind(kernels, std::span(key, one.head_dim), std::span(value, one.head_dim),
                         output, at, keys, values, one.values.stride);
  };
  if (layout_ == WeightLayout::F32) return put_as(put_position<WeightLayout::F32>);
  if (layout_ == WeightLayout::F16) return put_as(put_position<WeightLayout::F16>);
  if (layout_ == WeightLayout::RoundedBF16) return put_as(put_position<WeightLayout::RoundedBF16>);
  for (std::size_t d = 0; d < one.head_dim; d += kPanelOutputs) {
    const std::size_t n = std::min(kPanelOutputs, one.head_dim - d);
    put_key(Block(kernels, key + d, n), output, keys + panel_bytes(layout_, d));
    put_value(Block(kernels, value + d, n),
              values + d / kPanelOutputs * one.values.stride + panel_bytes(one.values.layout, at));
  }
}

std::shared_ptr<KvPages> make_kv_pages(std::span<const CacheShape> shapes, std::size_t capacity,
                                       WeightLayout layout, std::size_t n) {
  return std::make_shared<KvPages>(n * pages_for(capacity), page_bytes(shapes, layout));
}

double packed_kv_cache_bytes(std::span<const CacheShape> shapes, std::size_t capacity,
                             WeightLayout layout) {
  return static_cast<double>(pages_for(capacity)) * static_cast<double>(page_bytes(shapes, layout));
}

}  // namespace stagecraft
