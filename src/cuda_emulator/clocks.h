// Vector clocks: which access happened before which. Each thread has a clock, which advances at
// every event that orders accesses (barrier, __syncwarp, fence). An access records the clock of its
// thread. It happened before an access of another thread if that thread knows a clock at least as
// large:
//
//   __syncthreads   all threads of the block know each other's clocks: Block::snapshot
//   __syncwarp      the lanes of the mask know each other's clocks: Thread::warp_known
//   fence, then an atomic or volatile write   the address publishes what the thread knew at the
//                   fence; after __threadfence_block, only to the thread's block
//   atomic or volatile read   the thread knows what the address has published
//
// The write that publishes is later than the fence, so the thread did not know it at the fence.
// Therefore the publishing writes of each address are numbered, and the number is published, too.
// In Knowledge, it looks like a block of one thread with a number that no real block has.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace cuda_emulator {

using Clock = std::uint32_t;

// For some blocks, by their number, the clock of each thread. Never changes after it is made, so it
// is shared instead of copied.
using BlockClocks = std::shared_ptr<const std::vector<Clock>>;
using Knowledge = std::shared_ptr<const std::map<std::uint32_t, BlockClocks>>;

inline Clock known(const Knowledge& knowledge, std::uint32_t block, unsigned thread) {
  if (!knowledge) return 0;
  auto found = knowledge->find(block);
  return found == knowledge->end() ? 0 : (*found->second)[thread];
}

inline BlockClocks join(const BlockClocks& a, const BlockClocks& b) {
  bool is_more = false;
  for (std::size_t i = 0; a != b && i < a->size(); ++i) is_more |= (*b)[i] > (*a)[i];
  if (!is_more) return a;
  auto both = std::make_shared<std::vector<Clock>>(*a);
  for (std::size_t i = 0; i < both->size(); ++i)
    if ((*b)[i] > (*both)[i]) (*both)[i] = (*b)[i];
  return both;
}

inline Knowledge join(const Knowledge& a, const Knowledge& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  std::shared_ptr<std::map<std::uint32_t, BlockClocks>> both;
  for (const auto& [block, clocks] : *b) {
    const auto mine = a->find(block);
    const BlockClocks joined = mine == a->end() ? clocks : join(mine->second, clocks);
    if (mine != a->end() && joined == mine->second) continue;
    if (!both) both = std::make_shared<std::map<std::uint32_t, BlockClocks>>(*a);
    (*both)[block] = joined;
  }
  return both ? both : a;
}

// The knowledge of all publishing writes of one address up to `number`.
inline Knowledge writes_until(std::uint32_t place, Clock number) {
  auto clocks = std::make_shared<const std::vector<Clock>>(1, number);
  return std::make_shared<const std::map<std::uint32_t, BlockClocks>>(
      std::map<std::uint32_t, BlockClocks>{{place, clocks}});
}

}  // namespace cuda_emulator
