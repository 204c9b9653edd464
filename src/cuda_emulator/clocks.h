// What a thread knows of the others. Each thread has a clock, which goes on at every event that
// others can learn of (barrier, __syncwarp, fence). An access carries its thread's clock. It
// happened before another thread's access if that thread knows a clock at least as large:
//
//   __syncthreads                 everybody knows everybody's clock: Block::snapshot
//   __syncwarp                    the lanes of the mask know each other's: Thread::warp_known
//   fence; atomic or volatile write   the atomic's address publishes what the thread knew at the
//   fence atomic or volatile read           the thread knows what the address has published
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace cuda_emulator {

using Clock = std::uint32_t;

// For some blocks (by number) the clock of each thread. Never changed once made, so it is shared,
// not copied.
using BlockClocks = std::shared_ptr<const std::vector<Clock>>;
using Knowledge = std::shared_ptr<const std::map<std::uint32_t, BlockClocks>>;

inline Clock known(const Knowledge& knowledge, std::uint32_t block, unsigned thread) {
  if (!knowledge) return 0;
  auto found = knowledge->find(block);
  return found == knowledge->end() ? 0 : (*found->second)[thread];
}

inline BlockClocks join(const BlockClocks& a, const BlockClocks& b) {
  if (a == b) return a;
  auto both = std::make_shared<std::vector<Clock>>(*a);
  for (std::size_t i = 0; i < both->size(); ++i)
    if ((*b)[i] > (*both)[i]) (*both)[i] = (*b)[i];
  return both;
}

inline Knowledge join(const Knowledge& a, const Knowledge& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  auto both = std::make_shared<std::map<std::uint32_t, BlockClocks>>(*a);
  for (const auto& [block, clocks] : *b) {
    auto [place, is_new] = both->emplace(block, clocks);
    if (!is_new) place->second = join(place->second, clocks);
  }
  return both;
}

}  // namespace cuda_emulator
