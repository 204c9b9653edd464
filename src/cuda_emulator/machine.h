// The emulated GPU: threads, warps, the blocks that have not ended, and their launch.
//
//   launch -> blocks -> fibres (one per CUDA thread), each of which runs until it must wait
//   every access of a fibre -> checker (races, bounds, unwritten memory)
//                           -> counts (sectors, conflicts)
//   findings and counts -> report -> tools/cuda_check.py, which finds the source lines
//
// Everything runs on one thread of the CPU, in a fixed order. So two runs of a program give the
// same report.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#define CUDA_EMULATOR_SETS_THREAD  // threadIdx and the like are constants in kernels only
#include "clocks.h"
#include "fibre.h"
#include "include/cuda_emulator.h"
#include "memory.h"

namespace cuda_emulator {

constexpr unsigned warp_size = 32;
constexpr unsigned max_block = 1024;

struct Block;

enum class State {
  ready,          // can run
  at_barrier,     // waits for the other threads of the block
  at_collective,  // waits for other lanes of its warp
  exited
};

enum class Collective {
  sync,
  shuffle_index,
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  any,
  all,
  ballot,
  add,
  min_signed,
  max_signed,
  min_unsigned,
  max_unsigned,
  bit_and,
  bit_or,
  bit_xor,
  match,
  active,    // __activemask
  fragment,  // loads or stores a tile
  multiply   // multiplies tiles
};

enum class Vote { none, any, all, count };

struct AsyncCopy {
  char* to;
  const char* from;
  unsigned bytes, zeros;
  Address pc;
  bool committed = false;
  unsigned group = 0;
};

struct Thread {
  Block* block = nullptr;
  unsigned index = 0;    // in the block
  std::uint32_t id = 0;  // in the launch
  Fibre fibre;
  Address stack_low = 0, stack_high = 0;
  State state = State::ready;
  // Whether its kernel reports its accesses. Kernels compiled with optimisation do not.
  bool is_checked = false;
  std::vector<Address> calls;   // the return addresses of the functions that are running
  std::vector<Address> frames;  // where each function keeps its return address (frames.cpp)

  // what the thread waits for
  Address wait_pc = 0;
  std::uint64_t wait_stack = 0;  // hash of calls and wait_pc
  Vote vote = Vote::none;
  int predicate = 0;
  Collective collective = Collective::sync;
  unsigned mask = 0;
  std::uint64_t value = 0, result = 0;
  int argument = 0, width = 0;

  // which accesses of other threads happened before its next one: see clocks.h
  Clock clock = 1;
  Clock warp_known[warp_size] = {};
  Knowledge acquired;
  Knowledge fenced, fenced_in_block;  // at the last fence for all; at the last fence
  bool learns = true;                 // false: the result of its atomic function is not used
  bool has_new_fence = false;         // since its last volatile write to shared memory

  std::vector<AsyncCopy> copies;
  unsigned copy_group = 0;

  // its last reads; an atomicCAS may confirm some of them
  struct Read {
    Address address = 0, pc = 0;
    std::uint64_t value = 0;
    unsigned bytes = 0;
  } reads[8];
  unsigned next_read = 0;
  Read last_volatile_read;  // its last atomic or volatile access, if that was a volatile read
  Read overwrites;          // the value of another thread that its volatile write overwrites

  // to notice that it only repeats a loop: see watch_for_spinning
  Address spin_pc = 0;
  unsigned spins = 0, accesses = 0;
  Address last_pc = 0, last_address = 0;

  unsigned lane() const { return index % warp_size; }
};

// One execution of an instruction by a warp: the lanes that have executed it, and their addresses.
struct Request {
  std::uint32_t lanes = 0;
  std::uint8_t bytes[warp_size];
  Address address[warp_size];
};

// The requests of one instruction that some lanes have not made yet. The next request of lane l has
// the number made[l].
struct PendingRequests {
  PendingRequests() = default;
  PendingRequests(PendingRequests&&) = default;  // only moved: it owns its requests

  Address pc = 0;
  bool write = false, atomic = false;
  Space space = Space::global;
  std::uint32_t made[warp_size] = {};
  std::uint32_t first = 0;  // the number of requests.front()
  std::deque<std::unique_ptr<Request>> requests;
};

struct Warp {
  std::uint32_t live = 0;     // lanes that have not exited
  std::uint32_t waiting = 0;  // lanes at a barrier or a collective
  std::vector<PendingRequests> pending;
  std::size_t last_pending = 0;  // index of the one that was used last
};

struct Block {
  uint3 index{};
  std::uint32_t number = 0;
  std::uint32_t serial = 0, launch_serial = 0;  // its number among all blocks; its launch's
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Clock> snapshot;  // each thread's clock at the last barrier
  unsigned live = 0, waiting = 0;
  std::vector<Region> shared;
  std::vector<std::vector<char>> saved;  // the shared arrays' bytes while another block runs
};

// The thread that is running; null while host code is running.
extern Thread* current;
extern const Launch* launch;  // null outside a launch

Warp& warp_of(Thread& thread);
std::uint64_t stack_hash(const Thread& thread, Address pc);

// These two let other threads run. wait() returns when `current` is ready. yield() returns at its
// next turn. spinning: the thread only waits for a value.
void wait();
void yield(bool spinning);
// Runs all blocks. Returns false if abort_launch or abort_from ended the launch.
bool execute(const Launch& launch);
// Ends the launch from within a kernel, as a GPU does after an illegal access.
[[noreturn]] void abort_launch();

// ---- guest.cpp: untrusted code (guest.h)
// Whether a guest is running.
bool is_guarded();
// These two return true if no guest is running.
bool guest_may_write(Address address, std::size_t bytes);
bool guest_may_launch(const void* kernel);
// Ends the guest's call: call_guest returns false. If no guest is running, ends the program.
[[noreturn]] void end_host_code();

// ---- counts.cpp
void count_access(Thread& thread, Space space, Address address, unsigned bytes, bool write,
                  bool atomic, Address pc);
void count_pending(Block& block, Warp& warp);  // all lanes have met: no request gets more lanes
void count_first_touch(unsigned bytes);
void begin_counts();
// Reports what was counted since begin_counts. first_block: the serial of the launch's first block.
void count_launch(const Launch& launch, std::uint32_t first_block);

// ---- frames.cpp: where running functions keep their return addresses
// False if the write would change a return address, or a frame of the code that called the guest.
// Called for writes of host code and of kernels.
bool frames_allow_write(Address address, std::size_t bytes);
void forget_frames();  // of host code, when no guest function is running any more

// ---- matrices.cpp
void multiply_for(Thread* const* lanes);  // computes the product that all 32 lanes wait for

// ---- checker.cpp
// The `pc` of an access by a function that the program calls: the place behind that call.
#define PC reinterpret_cast<::cuda_emulator::Address>(__builtin_return_address(0))
// Whether code of this program was compiled with checks and has run.
bool& program_is_checked();
// read: of more than four bytes, some may be unwritten, because they may be padding. whole_read:
// all bytes must be written.
enum class Kind {
  read,
  whole_read,
  write,
  atomic,
  atomic_kept,  // leaves the value as it was, so it publishes nothing
  volatile_read,
  volatile_write,
  async_begin,
  async_end
};
void access(Address address, std::size_t bytes, unsigned alignment, Kind kind, Address pc);
// The same for an access that a function of CUDA makes for its caller. The checker sees no other
// accesses of a kernel that is not checked, so it must not see these either: memory that such a
// kernel wrote counts as unwritten.
void access_for_caller(Address address, std::size_t bytes, unsigned alignment, Kind kind,
                       Address pc);
bool is_there(Address address, std::size_t bytes);  // whether the running thread has this memory
void fence(Thread& thread, bool for_all_blocks);
// The running thread calls atomicCAS and expects `value`. If it has read this value there before,
// other threads run first, and may change the word. A program that does not try again then computes
// a wrong result.
void confirm_read(Address address, unsigned bytes, std::uint64_t value);
// Reports a race if the thread's last volatile write has overwritten a change by another thread.
// Called before another thread runs.
void report_lost_change(Thread& thread);
void report_unconfirmed_reads();  // at the end of a launch
void forget_published();          // at the end of a launch

// ---- host.cpp
// Reports a launch that needs more shared memory than a GPU gives. Called after the launch, because
// the arrays of the functions that it has called count. first_block: the serial of its first block.
void check_shared_memory(const Launch& launch, std::uint32_t first_block);

// ---- report.cpp
// The text may contain @PC@; the reader of the report replaces it by file:line. If there already is
// such a finding at the same places, finding() only counts it.
void write_report(const std::string& text);
std::string take_kept_report();  // for a program that does not write its report to a file
void finding(const char* kind, Address pc, Address other_pc, const std::string& text,
             std::uint64_t times = 1);
// Whether there already is such a finding at these two places, in either order. If so, it is
// counted once more. Callers call this first, so that a million races do not make a million texts.
bool found_again(const char* kind, Address pc, Address other_pc);
std::string describe(const Thread& thread);  // thread (1,0,0) of block (0,0,0)
std::string describe(std::uint32_t thread_id);
std::string place(const Region& region, Address address,
                  unsigned bytes);  // tile[37] (4 bytes each)
std::string at(Address pc);

}  // namespace cuda_emulator
