#include "model/kv_cache.h"

#include <algorithm>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {
namespace {

void copy_rows(MatrixView<const float> from, MatrixView<float> to) {
  for (std::size_t r = 0; r < from.rows(); ++r) {
    std::copy(from.row(r).begin(), from.row(r).end(), to.row(r).begin());
  }
}

}  // namespace

KvCache::KvCache(const Config& config, std::size_t capacity)
    : KvCache(std::vector<std::size_t>(config.n_layers, config.kv_dim()), capacity) {}

KvCache::KvCache(std::span<const std::size_t> widths, std::size_t capacity) : capacity_(capacity) {
  for (const std::size_t width : widths) {
    layers_.push_back({Matrix<float>(capacity, width), Matrix<float>(capacity, width)});
  }
}

void KvCache::append(std::size_t layer, MatrixView<const float> keys,
                     MatrixView<const float> values) {
  if (keys.rows() > capacity_ - length_) {
    throw Error("kv cache: expected at most {} more positions, found {}", capacity_ - length_,
                keys.rows());
  }
  Layer& store = layers_.at(layer);
  check_shape("kv cache", "keys", keys.rows(), store.keys.cols(), keys);
  check_shape("kv cache", "values", keys.rows(), store.values.cols(), values);
  copy_rows(keys, store.keys.view().row_range(length_, keys.rows()));
  copy_rows(values, store.values.view().row_range(length_, keys.rows()));
}

MatrixView<const float> KvCache::keys(std::size_t layer, std::size_t count) const {
  return layers_.at(layer).keys.view().row_range(0, count);
}

MatrixView<const float> KvCache::values(std::size_t layer, std::size_t count) const {
  return layers_.at(layer).values.view().row_range(0, count);
}

void KvCache::truncate(std::size_t length) { length_ = std::min(length_, length); }

}  // namespace stagecraft
