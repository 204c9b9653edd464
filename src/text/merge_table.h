#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/token.h"

namespace stagecraft {

// A pair of adjacent tokens -> what they merge into, and how early that was learnt. Open
// addressing: a merge looks up three pairs, so this is where encoding spends its time.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank;  // 0 was learnt first
    TokenId product;
  };

  // Makes room for `n` pairs; drops all there are.
  void reset(std::size_t n) { slots_.assign(std::bit_ceil(2 * n + 2), Slot{}); }

  // Of a pair that is set twice the later one counts, as in Hugging Face tokenizers.
  void set(TokenId left, TokenId right, Merge merge) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    slot = {key_of(left, right), merge};
  }

  // Null if the pair does not merge.
  const Merge* find(TokenId left, TokenId right) const {
    const Slot& slot = slots_[slot_of(key_of(left, right))];
    return slot.key == kFree ? nullptr : &slot.merge;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // no pair: ids are not negative
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge = {};
  };

  static std::uint64_t key_of(TokenId left, TokenId right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  std::size_t slot_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    // The finalizer of splitmix64 (Steele, Lea and Flood 2014): ids in a row spread over the table.
    std::uint64_t hash = key;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
    std::size_t slot = static_cast<std::size_t>(hash ^ hash >> 31) & mask;
    while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2);
};

}  // namespace stagecraft
