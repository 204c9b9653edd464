#pragma once

#include <span>
#include <vector>

#include "model/config.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The keys and values of every position that a sequence has computed, one pair of matrices per
// layer. A new token reads them, so older tokens are not computed again. Keys are stored after
// RoPE.
//
// A forward pass over q_len tokens appends q_len rows to each layer and then, once, advances.
//
// Address space for the whole capacity is reserved at once. The system adds memory in pages of 4 KB
// when a position is first written: nothing is allocated per token and nothing moves
// (tests/generation/memory_test.cpp measures it).
class KvCache {
 public:
  KvCache(const Config& config, std::size_t capacity);  // capacity in positions
  // widths: the width of a key, which is also the width of a value, for each layer that has a cache
  // of its own. `layer` below is then the index in this list.
  KvCache(std::span<const std::size_t> widths, std::size_t capacity);

  std::size_t length() const { return length_; }      // positions computed
  std::size_t capacity() const { return capacity_; }  // the most positions it can hold

  // Stores the keys and values [q_len, n_kv_heads * head_dim] of positions length() to length() +
  // q_len - 1. Throws Error if there is no room or a shape differs, std::out_of_range if there is
  // no such layer.
  void append(std::size_t layer, MatrixView<const float> keys, MatrixView<const float> values);

  // Views of the first `count` rows of a layer: [count, n_kv_heads * head_dim]; count <=
  // capacity().
  MatrixView<const float> keys(std::size_t layer, std::size_t count) const;
  MatrixView<const float> values(std::size_t layer, std::size_t count) const;

  void advance(std::size_t count) { length_ += count; }
  // Removes every position from `length` on; does nothing if length >= length().
  void truncate(std::size_t length);

 private:
  struct Layer {
    Matrix<float> keys, values;  // [capacity, n_kv_heads * head_dim]; pages untouched until used
  };
  std::vector<Layer> layers_;
  std::size_t capacity_;
  std::size_t length_ = 0;
};

}  // namespace stagecraft
