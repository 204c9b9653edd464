// The memory that a kernel may use, region by region: what cudaMalloc gave, __device__ variables,
// shared arrays. Each has a shadow: which bytes were written, and who accessed each granule last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "clocks.h"

namespace cuda_emulator {

using Address = std::uintptr_t;

enum class Space { global, shared };

struct Access {
  std::uint32_t thread = 0;  // its id + 1; 0: none
  Clock clock = 0;
  std::uint32_t site = 0;  // program counter, and in the top bit whether the access is atomic

  bool atomic() const { return site >> 31; }
  Address pc() const { return site & 0x7fffffffu; }
};

// The number of a write that publishes (clocks.h) among those of its address; place 0: it does not.
struct Release {
  std::uint32_t place = 0;
  Clock number = 0;
};

struct AtomicAccess : Access {
  Release in_block, everywhere;
};

// Four accesses are enough to find any race that only barriers can prevent: two of one warp, one of
// another warp and one of another block. Whoever comes next, one of these is not its own.
template <class T>
using FourAccesses = T[4];  // the last two: of another warp, of another block

struct Cell {
  std::uint32_t generation =
      0;  // the launch, or for shared memory the block, that the accesses belong to
  std::uint32_t atomics = 0;  // 1 + the index in Region::atomics; 0: none yet
  Access write;               // the last that is not atomic
  FourAccesses<Access> reads;
};

// The atomic and volatile accesses of a cell since its last write. They are no race with each
// other, so an atomic does not stand for the plain accesses before it, nor they for the atomics.
struct Atomics {
  FourAccesses<AtomicAccess> writes;
  FourAccesses<Access> reads;
};

struct Region {
  Address begin = 0;
  std::size_t bytes = 0;
  Space space = Space::global;
  std::string name;
  std::string function;  // of a shared array: the mangled name of the function that declares it
  bool host_may_access = false;  // managed memory, and variables
  bool freed = false;
  unsigned granule = 4;          // bytes per cell; finer as soon as an access is
  std::uint32_t generation = 0;  // shared memory: of the bytes in `written`
  std::vector<std::uint8_t> written;
  std::vector<Cell> cells;  // as many as granules, once there was an access
  std::vector<Atomics> atomics;

  Address end() const { return begin + bytes; }
};

// Reserves room for device memory and finds the program's variables and shared arrays.
void start_memory();

Region* find_global(Address address);                            // freed ones too
Region* find_in(std::vector<Region>& regions, Address address);  // sorted by begin
Region* nearest_global(Address address);  // the last region that begins before it
bool in_device_arena(Address address);
void device_memory_left(std::size_t& free, std::size_t& all);

const std::vector<Region>&
shared_arrays();  // of all kernels; dynamic ones once, with the largest size
// The size of `extern __shared__` arrays in the program; a launch says how much of it there is.
constexpr std::size_t dynamic_bytes = 227 << 10;
bool is_dynamic(const Region& shared_array);
std::string function_name(Address address);
// A block has accessed the array with this index in shared_arrays().
void note_use_of_shared(std::size_t index, std::uint32_t block);
// Of the arrays that a kernel declares itself, and of those of __device__ functions that a block
// from `first_block` on has accessed.
std::size_t static_shared_bytes(Address kernel, std::uint32_t first_block);

// Whether anybody may read and write what cudaMalloc gave (managed memory is always open). The
// checker does not see every access of host code: that of a class passed by value is none to the
// compiler.
void open_device_memory(bool open);

void* allocate(std::size_t bytes, bool managed, Address pc);  // null: no memory left
bool release(void* pointer);                                  // false: was not allocated
void set_written(Region& region, Address begin, std::size_t bytes);
bool any_written(const Region& region, Address begin, std::size_t bytes);
bool all_written(const Region& region, Address begin, std::size_t bytes);
void make_cells(Region& region, Address begin, std::size_t bytes);  // as fine as this access needs
Atomics& atomics_of(Region& region, Cell& cell);                    // makes them

// Is the address part of the emulator itself? Host code must not write there.
bool is_own(Address address);
// Is it a constant without a name (the text between quotes, the values of a local array), which
// anybody may read?
bool is_constant(Address address);
bool is_read_only(Address address);  // a constant with or without a name
// Is it the hidden flag that g++ gives a shared array of a class (of halves): has it been made?
bool is_guard(Address address);

}  // namespace cuda_emulator
