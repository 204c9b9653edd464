#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

// A hash table from pairs of non-negative numbers to values, with open addressing. A merge looks up
// three pairs, a trie one per byte: this is where encoding spends its time.
template <class Value>
class PairTable {
 public:
  // Allocates space for `n` pairs; removes all pairs.
  void reset(std::size_t n) { slots_.assign(std::bit_ceil(2 * n + 2), Slot{}); }

  // If a pair is set twice, the later value counts.
  void set(std::int32_t left, std::int32_t right, Value value) {
    Slot& slot = slots_[slot_of(key_of(left, right))];
    slot = {key_of(left, right), value};
  }

  // Null if the table does not have the pair.
  const Value* find(std::int32_t left, std::int32_t right) const {
    const Slot& slot = slots_[slot_of(key_of(left, right))];
    return slot.key == kFree ? nullptr : &slot.value;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // of no pair
  struct Slot {
    std::uint64_t key = kFree;
    Value value = {};
  };

  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint32_t>(right);
  }

  std::size_t slot_of(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    // The finalizer of splitmix64 (Steele, Lea and Flood 2014) spreads consecutive ids over the
    // table.
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
