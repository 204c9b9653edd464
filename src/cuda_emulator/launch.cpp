// Runs a launch: makes blocks, lets their threads take turns, and reports a deadlock.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "collectives.h"

// Kernels see these as constants; the emulator sets them for the thread that runs next.
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
extern const int warpSize = 32;

namespace cuda_emulator {

Thread* current = nullptr;
const Launch* launch = nullptr;

namespace {

constexpr std::size_t stack_bytes = 128 << 10, guard_bytes = 64 << 10;
constexpr unsigned max_resident_threads = 16 << 10;
// After this many rounds in which all threads only repeat loops, they count as stuck.
constexpr unsigned max_idle_rounds = 2000;

Fibre scheduler;
bool aborted = false;
bool idle_turn = false;  // the thread that just ran only waited for a value
std::uint32_t serial = 0, launch_serial = 0;
std::uint32_t first_serial = 0;  // the serial of the launch's first block
Block* loaded = nullptr;         // the block whose shared arrays are in memory now

std::vector<void*>& free_stacks() {
  static auto* stacks = new std::vector<void*>;
  return *stacks;
}

void* take_stack() {
  auto& stacks = free_stacks();
  if (stacks.empty()) {
    void* stack = mmap(nullptr, guard_bytes + stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED || mprotect(stack, guard_bytes, PROT_NONE) != 0)
      throw std::runtime_error("no memory for the stack of a kernel's thread");
    return static_cast<char*>(stack) + guard_bytes;
  }
  void* stack = stacks.back();
  stacks.pop_back();
  return stack;
}

void leave();

void run_thread() {
  launch->parameters->call();
  Thread& thread = *current;
  report_lost_change(thread);
  if (!thread.copies.empty()) __pipeline_wait_prior(0);
  thread.state = State::exited;
  thread.fenced = thread.fenced_in_block = {};
  Block& block = *thread.block;
  --block.live;
  Warp& warp = warp_of(thread);
  warp.live &= ~(1u << thread.lane());
  release_barrier(block);
  for (unsigned lane = 0; lane < warp_size && warp.waiting != 0; ++lane) {
    const unsigned index = thread.index - thread.lane() + lane;
    if (index < block.threads.size()) release_lanes(block.threads[index]);
  }
  release_active(thread);
  if (warp.live == 0) count_pending(block, warp);
  leave();
}

// The threads of blocks that have ended. Their vectors keep their memory.
std::vector<std::vector<Thread>>& spare_threads() {
  static auto* spare = new std::vector<std::vector<Thread>>;
  return *spare;
}

void renew(Thread& thread) {
  Thread fresh;
  fresh.calls = std::move(thread.calls);
  fresh.frames = std::move(thread.frames);
  fresh.copies = std::move(thread.copies);
  fresh.calls.clear();
  fresh.frames.clear();
  fresh.copies.clear();
  thread = std::move(fresh);
}

std::vector<Thread> take_threads(unsigned count) {
  std::vector<Thread> threads;
  if (auto& spare = spare_threads(); !spare.empty()) {
    threads = std::move(spare.back());
    spare.pop_back();
  }
  for (Thread& thread : threads) renew(thread);
  threads.resize(count);
  return threads;
}

std::unique_ptr<Block> make_block(const Launch& launch, std::uint32_t number,
                                  unsigned launch_bytes) {
  auto block = std::make_unique<Block>();
  block->number = number;
  block->serial = ++serial;
  block->launch_serial = launch_serial;
  block->index = {number % launch.grid.x, number / launch.grid.x % launch.grid.y,
                  number / launch.grid.x / launch.grid.y};
  const unsigned count = launch.block.x * launch.block.y * launch.block.z;
  block->live = count;
  block->threads = take_threads(count);
  block->warps.resize((count + warp_size - 1) / warp_size);
  block->snapshot.assign(count, 0);
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = block->threads[i];
    thread.block = block.get();
    thread.index = i;
    thread.id = number * count + i;
    void* stack = take_stack();
    thread.stack_low = reinterpret_cast<Address>(stack);
    thread.stack_high = thread.stack_low + stack_bytes;
    prepare(thread.fibre, stack, stack_bytes, run_thread);
    block->warps[i / warp_size].live |= 1u << (i % warp_size);
  }
  block->shared = shared_arrays();
  for (Region& region : block->shared)
    if (is_dynamic(region)) region.bytes = launch_bytes;
  block->saved.resize(block->shared.size());
  return block;
}

void free_block(Block& block) {
  for (Thread& thread : block.threads)
    free_stacks().push_back(reinterpret_cast<void*>(thread.stack_low));
  spare_threads().push_back(std::move(block.threads));
  if (loaded == &block) loaded = nullptr;
}

// Copies the shared arrays of a block to their addresses, and saves those of the block before. The
// arrays of all blocks have the same addresses.
void load(Block& block) {
  if (loaded == &block) return;
  if (loaded != nullptr)
    for (std::size_t i = 0; i < loaded->shared.size(); ++i) {
      const Region& region = loaded->shared[i];
      const auto* begin = reinterpret_cast<const char*>(region.begin);
      loaded->saved[i].assign(begin, begin + region.bytes);
    }
  for (std::size_t i = 0; i < block.saved.size(); ++i)
    std::copy(block.saved[i].begin(), block.saved[i].end(),
              reinterpret_cast<char*>(block.shared[i].begin));
  loaded = &block;
}

enum class Turn { progress, idle, stuck };
Turn result_of_turn = Turn::stuck;

// The first ready thread of the block from this index on becomes `current`; null if there is none.
void choose(Block& block, unsigned index) {
  while (index < block.threads.size() && block.threads[index].state != State::ready) ++index;
  current = index < block.threads.size() ? &block.threads[index] : nullptr;
  if (current == nullptr) return;
  const dim3& shape = blockDim;
  threadIdx = {index % shape.x, index / shape.x % shape.y, index / shape.x / shape.y};
}

// `current` has run until it must wait, until it wants to wait, or to its end. Lets the next thread
// of its block run; after the last one, the scheduler.
void leave() {
  Thread& thread = *current;
  if (aborted || !idle_turn) result_of_turn = Turn::progress;
  if (result_of_turn == Turn::stuck) result_of_turn = Turn::idle;
  idle_turn = false;
  current = nullptr;
  if (!aborted) choose(*thread.block, thread.index + 1);
  switch_fibre(thread.fibre, current != nullptr ? current->fibre : scheduler);
}

// Every ready thread runs until it must wait.
Turn turn(Block& block) {
  load(block);
  result_of_turn = Turn::stuck;
  blockIdx = block.index;
  choose(block, 0);
  if (current != nullptr) switch_fibre(scheduler, current->fibre);
  return result_of_turn;
}

std::string what_it_waits_for(const Thread& thread) {
  if (thread.state == State::at_barrier) return "waits for its block at " + at(thread.wait_pc);
  if (thread.state == State::at_collective)
    return "waits for lanes of its warp at " + at(thread.wait_pc);
  return "waits for a value at " + at(thread.spin_pc != 0 ? thread.spin_pc : thread.last_pc);
}

// Names two threads: the first one that waits, and the first one that waits at another place.
void report_deadlock(const std::vector<std::unique_ptr<Block>>& blocks) {
  const Thread *first = nullptr, *other = nullptr;
  auto place = [](const Thread& t) { return t.state == State::ready ? t.spin_pc : t.wait_pc; };
  for (const auto& block : blocks)
    for (const Thread& thread : block->threads) {
      if (thread.state == State::exited) continue;
      if (first == nullptr) first = &thread;
      if (other == nullptr && (place(thread) != place(*first) || thread.state != first->state))
        other = &thread;
    }
  if (first == nullptr) return;
  std::string text = describe(*first) + " " + what_it_waits_for(*first);
  if (other != nullptr) text += ", " + describe(*other) + " " + what_it_waits_for(*other);
  finding("deadlock", place(*first), other == nullptr ? 0 : place(*other),
          text + "; none of them can continue");
}

void run_blocks(const Launch& launch) {
  const std::uint32_t count = launch.grid.x * launch.grid.y * launch.grid.z;
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  std::vector<std::unique_ptr<Block>> resident;
  std::uint32_t next = 0;
  unsigned idle_rounds = 0;
  auto add = [&] { resident.push_back(make_block(launch, next++, unsigned(launch.shared_bytes))); };
  while (!aborted && (next < count || !resident.empty())) {
    if (resident.empty()) add();
    bool progress = false, idle = false;
    for (std::size_t i = 0; i < resident.size() && !aborted; ++i) {
      Turn result = turn(*resident[i]);
      progress |= result == Turn::progress;
      idle |= result == Turn::idle;
      if (resident[i]->live > 0) continue;
      for (Warp& warp : resident[i]->warps) count_pending(*resident[i], warp);
      free_block(*resident[i]);
      resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(i--));
      progress = true;
    }
    if (aborted) break;
    idle_rounds = progress ? 0 : idle_rounds + 1;
    if (progress) continue;
    // All threads wait. If they wait for values, a block that has not begun may write them.
    if (idle && next < count && (resident.size() + 1) * threads <= max_resident_threads) {
      add();
      idle_rounds = 0;
    } else if (!idle || idle_rounds > max_idle_rounds) {
      report_deadlock(resident);
      break;
    }
  }
  for (auto& block : resident) free_block(*block);
  loaded = nullptr;
}

}  // namespace

Warp& warp_of(Thread& thread) { return thread.block->warps[thread.index / warp_size]; }

std::uint64_t stack_hash(const Thread& thread, Address pc) {
  std::uint64_t hash = pc;
  for (Address call : thread.calls) hash = hash * 0x9e3779b97f4a7c15u + call;
  return hash;
}

void wait() {
  while (current->state != State::ready || aborted) {
    Thread& thread = *current;
    report_lost_change(thread);
    leave();
  }
}

void yield(bool spinning) {
  Thread& thread = *current;
  report_lost_change(thread);
  idle_turn = spinning;
  leave();
}

void abort_from(Block&) { aborted = true; }

void abort_launch() {
  aborted = true;
  leave();
  __builtin_unreachable();
}

bool execute(const Launch& what) {
  ++launch_serial;
  launch = &what;
  first_serial = serial + 1;
  blockDim = what.block;
  gridDim = what.grid;
  aborted = false;
  begin_counts();
  if (is_guarded()) open_device_memory(true);
  run_blocks(what);
  report_unconfirmed_reads();
  if (is_guarded()) open_device_memory(false);
  if (program_is_checked()) count_launch(what, first_serial);
  forget_published();
  launch = nullptr;
  check_shared_memory(what, first_serial);
  return !aborted;
}

}  // namespace cuda_emulator
