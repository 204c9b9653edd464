// The memory that a kernel may use. A region is a buffer of cudaMalloc, a __device__ variable or a
// shared array. Each region has a shadow, which says which bytes were written, and which threads
// accessed each granule last.
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

// The number of a write that publishes (clocks.h), among all such writes to its address. place 0:
// the write does not publish.
struct Release {
  std::uint32_t place = 0;
  Clock number = 0;
};

struct AtomicAccess : Access {
  Release in_block, everywhere;
};

// Four accesses are enough to find any race that only barriers can prevent: two of one warp, one of
// another warp of its block, and one of another block. Whichever thread comes next, at least one of
// these is of another thread, of another warp, or of another block, if there was any such access.
template <class T>
using FourAccesses = T[4];  // [2]: of another warp than [0]; [3]: of another block

struct Cell {
  std::uint32_t generation = 0;  // the accesses are of this launch; in shared memory, of this block
  std::uint32_t atomics = 0;     // 1 + the index in Region::atomics; 0: no atomic access yet
  Access write;                  // the last write that is not atomic
  FourAccesses<Access> reads;
};

// The atomic and volatile accesses of a cell since its last plain write. They cannot race with each
// other, only with plain accesses. So they are kept apart from the plain accesses.
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
  unsigned granule = 4;               // bytes per cell; gets smaller when an access is smaller
  std::uint32_t generation = 0;       // shared memory: the block that `written` is valid for
  std::vector<std::uint8_t> written;  // one byte per byte: 1 if it was written
  std::vector<Cell> cells;            // one per granule; empty before the first access
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
// The size of `extern __shared__` arrays in the program. A launch says how many bytes are used.
constexpr std::size_t dynamic_bytes = 227 << 10;
bool is_dynamic(const Region& shared_array);
std::string function_name(Address address);
// A block has accessed the array with this index in shared_arrays().
void note_use_of_shared(std::size_t index, std::uint32_t block);
// The bytes of the arrays that a kernel declares itself, and of those arrays of __device__
// functions that a block from `first_block` on has accessed.
std::size_t static_shared_bytes(Address kernel, std::uint32_t first_block);

// Opens or closes the memory of cudaMalloc for all code (managed memory is always open). This is
// needed because the compiler does not report every access of host code, for example not the copy
// of a class that is passed by value.
void open_device_memory(bool open);

void* allocate(std::size_t bytes, bool managed, Address pc);  // null: no memory left
bool release(void* pointer);                                  // false: not allocated by allocate()
void set_written(Region& region, Address begin, std::size_t bytes);
bool any_written(const Region& region, Address begin, std::size_t bytes);
bool all_written(const Region& region, Address begin, std::size_t bytes);
void make_cells(Region& region, Address begin, std::size_t bytes);  // small enough for this access
Atomics& atomics_of(Region& region, Cell& cell);                    // makes them if needed

// Is the address part of the emulator itself? Host code must not write there.
bool is_own(Address address);
// Is it a constant without a name (a string literal, the values of a local array), which all code
// may read?
bool is_constant(Address address);
bool is_read_only(Address address);  // a constant with or without a name
// Is it the hidden flag by which g++ remembers that a shared array of a class (such as __half) has
// been constructed?
bool is_guard(Address address);

}  // namespace cuda_emulator
