// Barriers of a block; shuffles, votes and __syncwarp of a warp.
#include <bit>
#include <cstring>

#include "collectives.h"

namespace cuda_emulator {

namespace {

std::uint32_t bit_of(const Thread& thread) { return 1u << thread.lane(); }

void set_waiting(Thread& thread, State state) {
  thread.state = state;
  warp_of(thread).waiting |= bit_of(thread);
}

void set_ready(Thread& thread) {
  thread.state = State::ready;
  warp_of(thread).waiting &= ~bit_of(thread);
}

// ---- the barrier of a block

// After a barrier, each thread knows everything that any thread of the block knew before it.
void join_clocks(Block& block) {
  Knowledge acquired, fenced, fenced_in_block;
  for (Thread& thread : block.threads) {
    block.snapshot[thread.index] = thread.clock++;
    acquired = join(acquired, thread.acquired);
    fenced = join(fenced, thread.fenced);
    fenced_in_block = join(fenced_in_block, thread.fenced_in_block);
    std::memset(thread.warp_known, 0, sizeof thread.warp_known);
  }
  for (Thread& thread : block.threads) {
    thread.acquired = acquired;
    thread.fenced = fenced;
    thread.fenced_in_block = fenced_in_block;
  }
}

void set_votes(Block& block) {
  int count = 0, waiting = 0;
  for (const Thread& thread : block.threads) {
    if (thread.state != State::at_barrier) continue;
    ++waiting;
    count += thread.predicate != 0;
  }
  for (Thread& thread : block.threads) {
    switch (thread.vote) {
      case Vote::none:
        thread.result = 0;
        break;
      case Vote::any:
        thread.result = count > 0;
        break;
      case Vote::all:
        thread.result = count == waiting;
        break;
      case Vote::count:
        thread.result = static_cast<unsigned>(count);
        break;
    }
  }
}

// Finds a thread that waits at another barrier than the first one. (On a GPU, threads would then
// continue at different places, or never.) In kernels that are compiled with optimisation and not
// checked, the compiler may have copied one barrier into two branches. So in these, all places
// count as the same.
const Thread* who_waits_elsewhere(const Block& block, const Thread*& first) {
  first = nullptr;
  for (const Thread& thread : block.threads) {
    if (thread.state != State::at_barrier) continue;
    if (first == nullptr) first = &thread;
    const bool elsewhere = thread.wait_stack != first->wait_stack && thread.is_checked;
    if (elsewhere || thread.vote != first->vote) return &thread;
  }
  return nullptr;
}

// ---- collectives of a warp

// The lane that a shuffle reads: the lane itself if the other one is outside its segment.
int source_lane(const Thread& thread) {
  const int lane = static_cast<int>(thread.lane()), first = lane & ~(thread.width - 1);
  int source = lane;
  switch (thread.collective) {
    case Collective::shuffle_index:
      return first + (thread.argument & (thread.width - 1));
    case Collective::shuffle_up:
      source = lane - thread.argument;
      return source < first ? lane : source;
    case Collective::shuffle_down:
      source = lane + thread.argument;
      break;
    default:
      source = lane ^ thread.argument;
      break;
  }
  return source >= first + thread.width || source < 0 ? lane : source;
}

Thread* lane_of(Block& block, unsigned warp, unsigned lane) {
  const unsigned index = warp * warp_size + lane;
  return index < block.threads.size() ? &block.threads[index] : nullptr;
}

std::uint64_t shuffled(Thread& thread, std::uint32_t participants) {
  const int source = source_lane(thread);
  Thread* from = lane_of(*thread.block, thread.index / warp_size, static_cast<unsigned>(source));
  if (participants >> source & 1) return from->value;
  finding("inactive lane", thread.wait_pc, 0,
          describe(thread) + " reads lane " + std::to_string(source) + ", which " +
              (!(thread.mask >> source & 1) ? "its mask does not contain"
               : from == nullptr            ? "the block does not have"
                                            : "has ended"));
  return thread.value;
}

std::uint64_t combined(Collective collective, std::uint64_t a, std::uint64_t b) {
  const auto ua = static_cast<unsigned>(a), ub = static_cast<unsigned>(b);
  const auto sa = static_cast<int>(ua), sb = static_cast<int>(ub);
  switch (collective) {
    case Collective::add:
      return ua + ub;
    case Collective::min_signed:
      return static_cast<unsigned>(sa < sb ? sa : sb);
    case Collective::max_signed:
      return static_cast<unsigned>(sa > sb ? sa : sb);
    case Collective::min_unsigned:
      return ua < ub ? ua : ub;
    case Collective::max_unsigned:
      return ua > ub ? ua : ub;
    case Collective::bit_and:
      return ua & ub;
    case Collective::bit_or:
      return ua | ub;
    default:
      return ua ^ ub;
  }
}

struct Participants {
  Thread* lanes[warp_size];
  int count = 0;
  std::uint32_t mask = 0;
};

// The lanes whose value passes a test, as bits.
template <class Test>
std::uint32_t lanes_where(const Participants& all, Test test) {
  std::uint32_t lanes = 0;
  for (int i = 0; i < all.count; ++i)
    if (test(all.lanes[i]->value)) lanes |= bit_of(*all.lanes[i]);
  return lanes;
}

// Do all lanes come from one call (see who_waits_elsewhere), with the same tile in memory? In a
// product, each lane has its own tile.
bool all_alike(const Participants& all) {
  const Thread& first = *all.lanes[0];
  for (int i = 1; i < all.count; ++i) {
    const Thread& other = *all.lanes[i];
    if (other.wait_pc != first.wait_pc && other.is_checked) return false;
    if (first.collective == Collective::multiply) continue;
    if (other.value != first.value || other.argument != first.argument) return false;
  }
  return true;
}

void set_result(Thread& thread, const Participants& all) {
  const auto ballot = [&] { return lanes_where(all, [](auto value) { return value != 0; }); };
  switch (thread.collective) {
    case Collective::sync:
      break;
    case Collective::any:
      thread.result = ballot() != 0;
      break;
    case Collective::all:
      thread.result = ballot() == all.mask;
      break;
    case Collective::ballot:
      thread.result = ballot();
      break;
    case Collective::match:
      thread.result = lanes_where(all, [&](auto value) { return value == thread.value; }) |
                      std::uint64_t{all.mask} << 32;
      break;
    case Collective::fragment:
    case Collective::multiply:
      thread.result = all.mask | std::uint64_t{all_alike(all)} << 32;
      break;
    case Collective::shuffle_index:
    case Collective::shuffle_up:
    case Collective::shuffle_down:
    case Collective::shuffle_xor:
      thread.result = shuffled(thread, all.mask);
      break;
    default:
      thread.result = all.lanes[0]->value;
      for (int i = 1; i < all.count; ++i)
        thread.result = combined(thread.collective, thread.result, all.lanes[i]->value);
  }
}

// Only __syncwarp orders accesses to memory; shuffles and votes do not.
void join_clocks(const Participants& all) {
  Clock clocks[warp_size] = {};
  Knowledge acquired, fenced, fenced_in_block;
  for (int i = 0; i < all.count; ++i) {
    Thread& thread = *all.lanes[i];
    thread.warp_known[thread.lane()] = thread.clock++;
    acquired = join(acquired, thread.acquired);
    fenced = join(fenced, thread.fenced);
    fenced_in_block = join(fenced_in_block, thread.fenced_in_block);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if (thread.warp_known[lane] > clocks[lane]) clocks[lane] = thread.warp_known[lane];
  }
  for (int i = 0; i < all.count; ++i) {
    Thread& thread = *all.lanes[i];
    std::memcpy(thread.warp_known, clocks, sizeof clocks);
    thread.acquired = acquired;
    thread.fenced = fenced;
    thread.fenced_in_block = fenced_in_block;
  }
}

// Have all lanes of the mask that have not exited come to the same operation?
bool all_there(Thread& thread, Participants& all) {
  const Warp& warp = warp_of(thread);
  all.mask = thread.mask & warp.live;
  if ((all.mask & ~warp.waiting) != 0) return false;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (!(all.mask >> lane & 1)) continue;
    Thread& other = *lane_of(*thread.block, thread.index / warp_size, lane);
    if (other.state != State::at_collective || other.mask != thread.mask ||
        other.collective != thread.collective)
      return false;
    all.lanes[all.count++] = &other;
  }
  return true;
}

}  // namespace

bool release_barrier(Block& block) {
  if (block.waiting == 0 || block.waiting < block.live) return false;
  const Thread* first = nullptr;
  if (const Thread* other = who_waits_elsewhere(block, first)) {
    finding("divergent barrier", first->wait_pc, other->wait_pc,
            describe(*first) + " waits here, " + describe(*other) + " at " + at(other->wait_pc) +
                (first->wait_pc == other->wait_pc ? ", called from another place" : ""));
    abort_from(block);
    return false;
  }
  for (Warp& warp : block.warps) count_pending(block, warp);
  join_clocks(block);
  set_votes(block);
  for (Thread& thread : block.threads)
    if (thread.state == State::at_barrier) set_ready(thread);
  block.waiting = 0;
  return true;
}

void release_active(Thread& thread) {
  const Warp& warp = warp_of(thread);
  if ((warp.live & ~warp.waiting) != 0) return;
  Thread* lanes[warp_size];
  for (unsigned lane = 0; lane < warp_size; ++lane)
    lanes[lane] = lane_of(*thread.block, thread.index / warp_size, lane);
  auto waits = [](const Thread* lane) {
    return lane != nullptr && lane->state == State::at_collective &&
           lane->collective == Collective::active;
  };
  for (Thread* lane : lanes) {
    if (!waits(lane)) continue;
    lane->result = 0;
    for (const Thread* other : lanes)
      if (waits(other) && other->wait_pc == lane->wait_pc) lane->result |= bit_of(*other);
  }
  for (Thread* lane : lanes)
    if (waits(lane)) set_ready(*lane);
}

bool release_lanes(Thread& thread) {
  Participants all;
  if (thread.state != State::at_collective || thread.collective == Collective::active ||
      !all_there(thread, all))
    return false;
  if (thread.collective == Collective::sync) join_clocks(all);
  if (thread.collective == Collective::multiply && all.count == warp_size) multiply_for(all.lanes);
  for (int i = 0; i < all.count; ++i) set_result(*all.lanes[i], all);
  for (int i = 0; i < all.count; ++i) set_ready(*all.lanes[i]);
  Warp& warp = warp_of(thread);
  if ((warp.live & ~all.mask) == 0) count_pending(*thread.block, warp);
  return true;
}

int block_barrier(Vote vote, int predicate, Address pc) {
  Thread& thread = *current;
  thread.vote = vote;
  thread.predicate = predicate;
  thread.wait_pc = pc;
  thread.wait_stack = stack_hash(thread, pc);
  set_waiting(thread, State::at_barrier);
  ++thread.block->waiting;
  if (!release_barrier(*thread.block)) release_active(thread);
  wait();
  return static_cast<int>(thread.result);
}

std::uint64_t collective(Collective kind, unsigned mask, std::uint64_t value, int argument,
                         int width, Address pc) {
  Thread& thread = *current;
  if (!(mask >> thread.lane() & 1)) {
    finding("inactive lane", pc, 0, describe(thread) + " is not in the mask that it passes");
    abort_launch();
  }
  if (width < 1 || width > 32 || !std::has_single_bit(static_cast<unsigned>(width))) {
    finding("inactive lane", pc, 0,
            describe(thread) + " passes the width " + std::to_string(width) +
                "; expected 1, 2, 4, 8, 16 or 32");
    abort_launch();
  }
  thread.collective = kind;
  thread.mask = mask;
  thread.value = value;
  thread.argument = argument;
  thread.width = width;
  thread.wait_pc = pc;
  set_waiting(thread, State::at_collective);
  if (!release_lanes(thread)) release_active(thread);
  wait();
  return thread.result;
}

}  // namespace cuda_emulator

using namespace cuda_emulator;

void __syncthreads() { block_barrier(Vote::none, 0, PC); }
int __syncthreads_or(int predicate) { return block_barrier(Vote::any, predicate, PC); }
int __syncthreads_and(int predicate) { return block_barrier(Vote::all, predicate, PC); }
int __syncthreads_count(int predicate) { return block_barrier(Vote::count, predicate, PC); }
void __syncwarp(unsigned mask) { collective(Collective::sync, mask, 0, 0, 32, PC); }

int __any_sync(unsigned mask, int p) {
  return int(collective(Collective::any, mask, p != 0, 0, 32, PC));
}
int __all_sync(unsigned mask, int p) {
  return int(collective(Collective::all, mask, p != 0, 0, 32, PC));
}
unsigned __ballot_sync(unsigned mask, int p) {
  return unsigned(collective(Collective::ballot, mask, p != 0, 0, 32, PC));
}

#define REDUCTION(T, name, kind)                                                           \
  T name(unsigned mask, T value) {                                                         \
    return T(collective(Collective::kind, mask, static_cast<unsigned>(value), 0, 32, PC)); \
  }
REDUCTION(int, __reduce_add_sync, add)
REDUCTION(int, __reduce_min_sync, min_signed)
REDUCTION(int, __reduce_max_sync, max_signed)
REDUCTION(unsigned, __reduce_add_sync, add)
REDUCTION(unsigned, __reduce_min_sync, min_unsigned)
REDUCTION(unsigned, __reduce_max_sync, max_unsigned)
REDUCTION(unsigned, __reduce_and_sync, bit_and)
REDUCTION(unsigned, __reduce_or_sync, bit_or)
REDUCTION(unsigned, __reduce_xor_sync, bit_xor)

// equal: the lanes with this value. met: the lanes of the mask that were alive when they met;
// others may have ended since.
struct Matched {
  unsigned equal, met;
};
template <class T>
static Matched match(unsigned mask, T value, Address pc) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  const std::uint64_t result = collective(Collective::match, mask, bits, 0, 32, pc);
  return {static_cast<unsigned>(result), static_cast<unsigned>(result >> 32)};
}
#define MATCH(T)                                                                             \
  unsigned __match_any_sync(unsigned mask, T value) { return match(mask, value, PC).equal; } \
  unsigned __match_all_sync(unsigned mask, T value, int* all_are_equal) {                    \
    const auto [equal, met] = match(mask, value, PC);                                        \
    const bool all = equal == met;                                                           \
    access_for_caller(Address(all_are_equal), sizeof(int), sizeof(int), Kind::write, PC);    \
    *all_are_equal = all;                                                                    \
    return all ? equal : 0;                                                                  \
  }
CUDA_EMULATOR_MATCHED_TYPES(MATCH)

unsigned __activemask() {
  return unsigned(collective(Collective::active, 0xffffffffu, 0, 0, 32, PC));
}

template <class T>
static T shuffle(Collective kind, unsigned mask, T value, int argument, int width, Address pc) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = collective(kind, mask, bits, argument, width, pc);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

#define SHUFFLES(T)                                                                  \
  T __shfl_sync(unsigned mask, T value, int lane, int width) {                       \
    return shuffle(Collective::shuffle_index, mask, value, lane, width, PC);         \
  }                                                                                  \
  T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width) {           \
    return shuffle(Collective::shuffle_up, mask, value, int(distance), width, PC);   \
  }                                                                                  \
  T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width) {         \
    return shuffle(Collective::shuffle_down, mask, value, int(distance), width, PC); \
  }                                                                                  \
  T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width) {              \
    return shuffle(Collective::shuffle_xor, mask, value, lane_mask, width, PC);      \
  }
CUDA_EMULATOR_SHUFFLED_TYPES(SHUFFLES)
