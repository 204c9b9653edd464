// Checks every access: does the memory exist, was it written, and is there a race?
#include <cstring>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "machine.h"

namespace cuda_emulator {

namespace {

long long accesses = 0;

bool is_write(Kind kind) {
  return kind != Kind::read && kind != Kind::whole_read && kind != Kind::volatile_read;
}

bool is_atomic(Kind kind) { return kind == Kind::atomic || kind == Kind::atomic_kept; }

bool is_volatile(Kind kind) { return kind == Kind::volatile_read || kind == Kind::volatile_write; }

const char* verb(bool write, bool atomic) {
  if (atomic && write) return "changes atomically";
  return write ? "writes" : "reads";
}

const char* past(bool write, bool atomic) {
  if (atomic && write) return "changed it atomically";
  return write ? "wrote it" : "read it";
}

bool happened_before(const Access& access, const Thread& thread) {
  const std::uint32_t id = access.thread - 1;
  if (id == thread.id) return true;
  const auto threads = static_cast<std::uint32_t>(thread.block->threads.size());
  const std::uint32_t block = id / threads, index = id % threads;
  if (block == thread.block->number) {
    if (thread.block->snapshot[index] >= access.clock) return true;
    if (index / warp_size == thread.index / warp_size &&
        thread.warp_known[index % warp_size] >= access.clock)
      return true;
  }
  return known(thread.acquired, block, index) >= access.clock;
}

bool happened_before(const AtomicAccess& access, const Thread& thread) {
  for (const Release& release : {access.in_block, access.everywhere})
    if (release.place != 0 && known(thread.acquired, release.place, 0) >= release.number)
      return true;
  return happened_before(static_cast<const Access&>(access), thread);
}

// One access of one thread, as the cells see it.
struct Now {
  Thread& thread;
  Region& region;
  Address address;
  unsigned bytes;
  bool write, atomic;
  bool spins;  // the thread's last access had the same address and pc
  AtomicAccess access;
};

// If CUDA has no atomic function for an operation, programs make it with atomicCAS, as CUDA's
// manual shows. They first read the word with a plain read. This is no race if the program then
// gives the value to atomicCAS, which fails if the word has changed. A thread may also find that it
// needs no atomicCAS (for a maximum, for example). So a race between a plain read and an atomic
// write is reported at the end of the launch, unless some thread has confirmed a read at the same
// place in the program by then.
struct Unconfirmed {
  std::string text;
  std::uint64_t times = 0;
};
struct PlainReads {
  std::set<Address> confirmed;
  std::map<std::pair<Address, Address>, Unconfirmed>
      unconfirmed;  // by pc of the read and the write
};
PlainReads& plain_reads() {
  static auto* reads = new PlainReads;
  return *reads;
}

void race(const Now& now, const Access& other, bool other_write) {
  if (found_again("race", now.access.pc(), other.pc())) return;
  const bool reads = !now.write && !now.atomic && other.atomic();
  const bool was_read = !other_write && !other.atomic() && now.atomic;
  Unconfirmed* unconfirmed = nullptr;
  if ((reads && !now.spins) || was_read) {
    const Address read = (reads ? now.access : other).pc();
    if (plain_reads().confirmed.contains(read)) return;
    unconfirmed = &plain_reads().unconfirmed[{read, (reads ? other : now.access).pc()}];
    if (++unconfirmed->times > 1) return;
  }
  std::string text = describe(now.thread) + " " + verb(now.write, now.atomic) + " " +
                     place(now.region, now.address, now.bytes) + "; " + describe(other.thread - 1) +
                     " " + past(other_write, other.atomic()) + " at " + at(other.pc()) +
                     ", and no synchronisation orders the two";
  if (unconfirmed == nullptr) return finding("race", now.access.pc(), other.pc(), text);
  unconfirmed->text = text;
}

template <class T>
bool in_race(const Now& now, const T& other) {
  return other.thread != 0 && !(now.atomic && other.atomic()) &&
         !happened_before(other, now.thread);
}

template <class T>
void add(FourAccesses<T>& accesses, const Now& now) {
  const std::uint32_t threads = now.thread.block->threads.size();
  const std::uint32_t id = now.thread.id;
  T* free = nullptr;
  for (T& access : accesses)
    if (access.thread != 0 && happened_before(access, now.thread)) {
      access = {};  // a thread that is ordered after the new access is ordered after this one, too
      free = &access;
    }
  if (accesses[0].thread == 0) {
    // The other slots are chosen relative to the first access. So the new access becomes the first.
    accesses[0] = now.access;
    return;
  }
  const std::uint32_t first = accesses[0].thread - 1;
  const unsigned slot = first / threads != id / threads                           ? 3
                        : first % threads / warp_size != id % threads / warp_size ? 2
                                                                                  : 1;
  if (accesses[slot].thread == 0) free = &accesses[slot];
  if (free != nullptr) *free = now.access;
}

void look(Cell& cell, const Now& now) {
  auto races_with = [&](auto& others, bool are_writes) {
    for (const auto& other : others)
      if (in_race(now, other)) race(now, other, are_writes);
  };
  Atomics* atomics = now.atomic || cell.atomics != 0 ? &atomics_of(now.region, cell) : nullptr;
  if (in_race(now, cell.write)) race(now, cell.write, true);
  if (!now.atomic && atomics != nullptr) races_with(atomics->writes, true);
  if (now.write) {
    races_with(cell.reads, false);
    if (!now.atomic && atomics != nullptr) races_with(atomics->reads, false);
  }
  if (now.atomic) return now.write ? add(atomics->writes, now) : add(atomics->reads, now);
  if (!now.write) return add(cell.reads, now);
  cell.write = now.access;
  for (Access& read : cell.reads) read = {};
  if (atomics != nullptr) *atomics = {};
}

[[noreturn]] void fatal(const char* kind, Address pc, const std::string& text) {
  finding(kind, pc, 0, text);
  abort_launch();
}

std::string hex(Address address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

// Describes an address that is in no buffer: how far it is before or behind the nearest one.
std::string beside(Address address) {
  const Region* best = nullptr;
  Address distance = 0;
  auto consider = [&](const Region& region) {
    const Address d = address < region.begin ? region.begin - address : address - region.end() + 1;
    if (best == nullptr || d < distance) best = &region, distance = d;
  };
  for (const Region& region : current->block->shared)
    if (region.bytes > 0) consider(region);
  if (Region* before = nearest_global(address)) consider(*before);
  if (address == 0 || best == nullptr || distance > (1u << 20))
    return "at address " + hex(address) + ", which is in no buffer";
  const char* side = address < best->begin ? " before " : " after ";
  return bytes_text(distance - (address < best->begin ? 0 : 1)) + side +
         (address < best->begin ? "the beginning of " : "the end of ") + best->name + " (" +
         bytes_text(best->bytes) + ")";
}

[[noreturn]] void out_of_bounds(Address address, std::size_t bytes, bool write, Address pc) {
  fatal("out of bounds", pc,
        describe(*current) + (write ? " writes " : " reads ") + bytes_text(bytes) + ", " +
            beside(address));
}

// At the first access of a block to a shared array: all bytes count as unwritten, and become NaN.
void renew(Region& region, std::uint32_t serial) {
  region.generation = serial;
  region.written.assign(region.bytes, 0);
  std::memset(reinterpret_cast<void*>(region.begin), 0xff, region.bytes);
}

// Null for a constant without a name.
Region* region_of(Address address, std::size_t bytes, bool write, Address pc) {
  Block& block = *current->block;
  const bool is_allocated = in_device_arena(address);
  Region* region = is_allocated ? nullptr : find_in(block.shared, address);
  if (region != nullptr) {
    if (region->generation != block.serial) {
      renew(*region, block.serial);
      note_use_of_shared(static_cast<std::size_t>(region - block.shared.data()), block.serial);
    }
  } else {
    region = find_global(address);
  }
  if (region != nullptr && region->freed)
    fatal(
        "out of bounds", pc,
        describe(*current) + (write ? " writes " : " reads ") + region->name + ", which was freed");
  if (region != nullptr && write && !is_allocated && is_read_only(address))
    fatal("out of bounds", pc,
          describe(*current) + " writes " + region->name + ", which is constant");
  // The kernels of a guest may read the variables of the program, but not write them.
  if (region != nullptr && write && !is_allocated && is_guarded() && region->space == Space::global)
    region = nullptr;
  if (region == nullptr && !write && is_constant(address) && is_constant(address + bytes - 1))
    return nullptr;
  if (region == nullptr || address + bytes > region->end())
    out_of_bounds(region == nullptr ? address : region->end(), bytes, write, pc);
  return region;
}

void host_access(Address address, std::size_t bytes, bool write, Address pc) {
  if (is_own(address) || is_own(address + bytes - 1)) {
    finding("forbidden", pc, 0,
            std::string("host code ") + (write ? "writes" : "reads") + " the emulator's memory");
    end_host_code();
  }
  const bool on_stack = is_guarded() && guest_may_write(address, bytes);
  if (write && !in_device_arena(address) &&
      (!guest_may_write(address, bytes) || (on_stack && !frames_allow_write(address, bytes)))) {
    finding("forbidden", pc, 0, "host code writes memory that is neither its own nor a kernel's");
    end_host_code();
  }
  if (!in_device_arena(address)) return;
  const Region* region = find_global(address);
  if (region != nullptr && !region->freed && region->host_may_access &&
      address + bytes <= region->end()) {
    if (write) set_written(*find_global(address), address, bytes);
    return;
  }
  finding("host access", pc, 0,
          std::string("host code ") + (write ? "writes" : "reads") + " device memory" +
              (region == nullptr ? std::string() : ": " + place(*region, address, bytes)));
  end_host_code();
}

// A thread that repeats one atomic or volatile access in a loop waits for another thread.
void watch_for_spinning(Thread& thread, Kind kind, Address pc) {
  constexpr unsigned enough_spins = 100, enough_accesses = 1u << 20;
  if (is_atomic(kind) || is_volatile(kind)) {
    thread.spins = thread.spin_pc == pc ? thread.spins + 1 : 0;
    thread.spin_pc = pc;
  }
  if (thread.spins >= enough_spins) {
    thread.spins = 0;
    yield(true);
  } else if (++thread.accesses >= enough_accesses) {
    thread.accesses = 0;
    yield(true);
  }
}

void check_async_copies(const Thread& thread, Address address, std::size_t bytes, bool write,
                        Address pc) {
  for (const AsyncCopy& copy : thread.copies) {
    const auto to = reinterpret_cast<Address>(copy.to);
    if (address < to + copy.bytes + copy.zeros && to < address + bytes)
      finding("race", pc, copy.pc,
              describe(thread) + (write ? " writes" : " reads") +
                  " shared memory that its asynchronous copy at " + at(copy.pc) +
                  " has not yet written: no wait between the two");
  }
}

// What atomic and volatile writes have published (clocks.h), by address and by the serial number of
// the block that it was published to; 0: to all blocks. Shared memory has the same addresses in
// each block.
using Place = std::pair<std::uint32_t, Address>;
struct Published {
  Knowledge knowledge;
  Release last;  // write that has published
};
struct AllPublished {
  std::map<Place, Published> places;
  std::uint32_t last_place = 0;  // Release::place counts down from the largest number
};
AllPublished& published() {
  static auto* all = new AllPublished;
  return *all;
}

void acquire(Thread& thread, const Published& what) {
  if (known(thread.acquired, what.last.place, 0) >= what.last.number) return;  // nothing new
  thread.acquired = join(thread.acquired, what.knowledge);
  thread.acquired = join(thread.acquired, writes_until(what.last.place, what.last.number));
}

// Returns the number of this write, if it publishes.
Release synchronize(Thread& thread, const Place& place, Kind kind, const Knowledge& fenced) {
  auto& places = published().places;
  auto found = places.find(place);
  if (found != places.end() && kind != Kind::volatile_write && thread.learns)
    acquire(thread, found->second);
  if (!is_write(kind) || kind == Kind::atomic_kept) return {};
  // A thread that reads a volatile write learns nothing about earlier writes to the address.
  if (found != places.end() && kind == Kind::volatile_write) places.erase(found);
  if (!fenced) return {};
  Published& here = places[place];
  if (here.last.place == 0) here.last.place = --published().last_place;
  ++here.last.number;
  here.knowledge = join(here.knowledge, fenced);
  return here.last;
}

void synchronize(Thread& thread, Kind kind, Space space, AtomicAccess& access, Address address) {
  access.in_block =
      synchronize(thread, {thread.block->serial, address}, kind, thread.fenced_in_block);
  if (space == Space::global)
    access.everywhere = synchronize(thread, {0, address}, kind, thread.fenced);
}

// Whether a volatile access counts as an atomic one. In shared memory, each volatile write needs a
// new fence for this. Threads of a warp that exchange values through volatile memory without fences
// rely on lockstep, which is a race.
bool counts_as_atomic(Thread& thread, Space space, Kind kind, std::size_t bytes) {
  if (!is_volatile(kind) || bytes > 8) return false;
  if (space == Space::global || kind == Kind::volatile_read) return true;
  return std::exchange(thread.has_new_fence, false);
}

std::uint64_t value_at(Address address, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), bytes);
  return value;
}

void remember(Thread& thread, Address address, unsigned bytes, Address pc) {
  Thread::Read& read = thread.reads[thread.next_read++ % std::size(thread.reads)];
  read = {address, pc, value_at(address, bytes), bytes};
}

// Whether a thread waits between its volatile read and its volatile write of the same bytes.
bool waits_to_write = false;

// x = x + 1 with a volatile x is not an atomic addition. So all other threads run between the read
// and the write of one thread. If they change x, their change is lost, unless this thread writes
// the same value.
void watch_volatile(Thread& thread, Kind kind, Address address, unsigned bytes, Address pc) {
  const Thread::Read read = std::exchange(thread.last_volatile_read, {});
  if (bytes > 8) return;
  if (kind == Kind::volatile_read)
    thread.last_volatile_read = {address, pc, value_at(address, bytes), bytes};
  if (kind != Kind::volatile_write || read.address != address || read.bytes != bytes) return;
  if (waits_to_write) return;
  waits_to_write = true;
  yield(false);
  waits_to_write = false;
  const std::uint64_t now = value_at(address, bytes);
  if (now != read.value) thread.overwrites = {address, pc, now, bytes};
}

void read_of_unwritten(Thread& thread, const Region& region, Address address, unsigned bytes,
                       Address pc) {
  if (found_again("unwritten", pc, 0)) return;
  std::string text =
      describe(thread) + " reads " + place(region, address, bytes) + ", which was never written";
  finding("unwritten", pc, 0, text);
}

// Memory outside all regions that a kernel may access, and that is not checked further.
bool may_always(Address address, std::size_t bytes, bool write) {
  const auto parameters = reinterpret_cast<Address>(launch->parameters);
  if (!write && address >= parameters && address + bytes <= parameters + launch->parameters->size())
    return true;
  if (!write && is_own(address)) return true;  // blockDim, threadIdx, ...
  return is_guard(address);
}

}  // namespace

bool& program_is_checked() {
  static bool checked = false;
  return checked;
}

void access_for_caller(Address address, std::size_t bytes, unsigned alignment, Kind kind,
                       Address pc) {
  if (current == nullptr || current->is_checked)
    access(address, bytes, alignment, kind, pc);
  else
    watch_for_spinning(*current, kind, pc);
}

void access(Address address, std::size_t bytes, unsigned alignment, Kind kind, Address pc) {
  const bool write = is_write(kind);
  if (current == nullptr) return host_access(address, bytes, write, pc);
  Thread& thread = *current;
  ++accesses;
  if (thread.overwrites.bytes != 0) report_lost_change(thread);
  if (address >= thread.stack_low && address + bytes <= thread.stack_high) {
    if (write && !frames_allow_write(address, bytes))
      fatal("out of bounds", pc, describe(thread) + " overwrites the return address of a function");
    return;
  }
  const bool again = std::exchange(thread.last_address, address) == address;
  const bool spins = std::exchange(thread.last_pc, pc) == pc && again;
  if (!in_device_arena(address) && may_always(address, bytes, write)) return;
  Region* found = region_of(address, bytes, write, pc);
  if (found == nullptr) return;
  Region& region = *found;
  if (alignment > 1 && address % alignment != 0)
    fatal("misaligned", pc,
          describe(thread) + (write ? " writes " : " reads ") + bytes_text(bytes) + " at byte " +
              std::to_string(address - region.begin) + " of " + region.name +
              "; expected a multiple of " + std::to_string(alignment));
  // The compiler reports the access to a large struct once. A GPU moves at most 16 bytes at a time.
  if (bytes > 16) {
    for (std::size_t i = 0; i < bytes; i += 4)
      access(address + i, bytes - i < 4 ? bytes - i : 4, 1, kind, pc);
    return;
  }
  const auto size = static_cast<unsigned>(bytes);
  const bool atomic = is_atomic(kind) || counts_as_atomic(thread, region.space, kind, size);
  watch_for_spinning(thread, kind, pc);
  if (is_atomic(kind) || is_volatile(kind)) watch_volatile(thread, kind, address, size, pc);
  // In a piece of more than 4 bytes, some may be padding, which is never written.
  if ((!write || is_atomic(kind)) &&
      !(size > 4 && kind != Kind::whole_read ? any_written(region, address, size)
                                             : all_written(region, address, size)))
    read_of_unwritten(thread, region, address, size, pc);
  if (!thread.copies.empty() && region.space == Space::shared)
    check_async_copies(thread, address, size, write, pc);
  if (kind != Kind::async_begin)
    count_access(thread, region.space, address, size, write, is_atomic(kind), pc);

  make_cells(region, address, size);
  const std::uint32_t generation =
      region.space == Space::shared ? thread.block->serial : thread.block->launch_serial;
  AtomicAccess how{
      {thread.id + 1, thread.clock, static_cast<std::uint32_t>(pc) | (atomic ? 1u << 31 : 0)},
      {},
      {}};
  if (atomic) synchronize(thread, kind, region.space, how, address);
  const Now now{thread, region, address, size, write, atomic, spins, how};
  if (!write && size <= 8) remember(thread, address, size, pc);
  const Address first = (address - region.begin) / region.granule;
  for (unsigned i = 0; i < size / region.granule; ++i) {
    Cell& cell = region.cells[first + i];
    if (cell.generation != generation) {
      if (cell.atomics != 0) region.atomics[cell.atomics - 1] = {};
      const std::uint32_t atomics_kept = cell.atomics;
      cell = {};
      cell.generation = generation;
      cell.atomics = atomics_kept;
      if (region.space == Space::global) count_first_touch(region.granule);
    }
    look(cell, now);
  }
  if (write && kind != Kind::async_begin) set_written(region, address, size);
}

void report_lost_change(Thread& thread) {
  if (thread.overwrites.bytes == 0) return;
  const Thread::Read lost = std::exchange(thread.overwrites, {});
  if (value_at(lost.address, lost.bytes) == lost.value || found_again("race", lost.pc, 0)) return;
  const Region* region = find_in(thread.block->shared, lost.address);
  if (region == nullptr) region = find_global(lost.address);
  if (region == nullptr) return;
  finding("race", lost.pc, 0,
          describe(thread) + " reads and then writes " + place(*region, lost.address, lost.bytes) +
              "; another thread has changed it in between, and that change is lost: volatile is "
              "not atomic");
}

bool is_there(Address address, std::size_t bytes) {
  if (address >= current->stack_low && address + bytes <= current->stack_high) return true;
  const Region* region = find_in(current->block->shared, address);
  if (region == nullptr) region = find_global(address);
  return region != nullptr && !region->freed && address + bytes <= region->end();
}

void fence(Thread& thread, bool for_all_blocks) {
  auto clocks = std::make_shared<std::vector<Clock>>(thread.block->snapshot);
  const unsigned first_lane = thread.index - thread.lane();
  for (unsigned lane = 0; lane < warp_size && first_lane + lane < clocks->size(); ++lane)
    if (thread.warp_known[lane] > (*clocks)[first_lane + lane])
      (*clocks)[first_lane + lane] = thread.warp_known[lane];
  (*clocks)[thread.index] = thread.clock++;
  auto own = std::make_shared<std::map<std::uint32_t, BlockClocks>>();
  own->emplace(thread.block->number, std::move(clocks));
  thread.fenced_in_block = join(thread.acquired, std::move(own));
  if (for_all_blocks) thread.fenced = thread.fenced_in_block;
  thread.has_new_fence = true;
}

void confirm_read(Address address, unsigned bytes, std::uint64_t value) {
  if (current == nullptr) return;
  const std::uint64_t bits = bytes < 8 ? value & ((std::uint64_t{1} << 8 * bytes) - 1) : value;
  bool is_confirmed = false;
  for (Thread::Read& read : current->reads) {
    if (read.address != address || read.bytes != bytes || read.value != bits) continue;
    plain_reads().confirmed.insert(read.pc);
    read = {};
    is_confirmed = true;
  }
  if (is_confirmed) yield(false);
}

void report_unconfirmed_reads() {
  auto& unconfirmed = plain_reads().unconfirmed;
  for (const auto& [pcs, race] : unconfirmed)
    if (!plain_reads().confirmed.contains(pcs.first))
      finding("race", pcs.first, pcs.second, race.text, race.times);
  unconfirmed.clear();
}

void forget_published() {
  published() = {};
  waits_to_write = false;
}

}  // namespace cuda_emulator

long long clock64() { return cuda_emulator::accesses; }

// ---- functions that the compiler calls before every access --------------------------------------

using cuda_emulator::access;
using cuda_emulator::Address;
using cuda_emulator::current;
using cuda_emulator::Kind;

#define ACCESSES(bytes)                                         \
  extern "C" void __tsan_read##bytes(void* p) {                 \
    access(Address(p), bytes, bytes, Kind::read, PC);           \
  }                                                             \
  extern "C" void __tsan_write##bytes(void* p) {                \
    access(Address(p), bytes, bytes, Kind::write, PC);          \
  }                                                             \
  extern "C" void __tsan_unaligned_read##bytes(void* p) {       \
    access(Address(p), bytes, 1, Kind::read, PC);               \
  }                                                             \
  extern "C" void __tsan_unaligned_write##bytes(void* p) {      \
    access(Address(p), bytes, 1, Kind::write, PC);              \
  }                                                             \
  extern "C" void __tsan_volatile_read##bytes(void* p) {        \
    access(Address(p), bytes, bytes, Kind::volatile_read, PC);  \
  }                                                             \
  extern "C" void __tsan_volatile_write##bytes(void* p) {       \
    access(Address(p), bytes, bytes, Kind::volatile_write, PC); \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

extern "C" void __tsan_read_range(void* p, std::size_t bytes) {
  if (bytes > 0) access(Address(p), bytes, 1, Kind::read, PC);
}
extern "C" void __tsan_write_range(void* p, std::size_t bytes) {
  if (bytes > 0) access(Address(p), bytes, 1, Kind::write, PC);
}
extern "C" void __tsan_vptr_read(void** p) { access(Address(p), sizeof *p, 1, Kind::read, PC); }
extern "C" void __tsan_vptr_update(void** p, void*) {
  access(Address(p), sizeof *p, 1, Kind::write, PC);
}
extern "C" void __tsan_init() {}

// Called for an index outside an array whose size the compiler knows (-fsanitize=bounds-strict).
extern "C" void __ubsan_handle_out_of_bounds(void* data, unsigned long index) {
  struct Where {
    const char* file;
    unsigned line, column;
    const struct {
      unsigned short kind, info;
      char name[1];
    } * array_type;
  };
  const auto* where = static_cast<const Where*>(data);
  std::string text = "index " + std::to_string(static_cast<long>(index)) + " of an array of type " +
                     where->array_type->name;
  if (current == nullptr) {
    cuda_emulator::finding("out of bounds", PC, 0, "host code uses " + text);
    cuda_emulator::end_host_code();
  }
  cuda_emulator::finding("out of bounds", PC, 0, describe(*current) + " uses " + text);
  cuda_emulator::abort_launch();
}

// The assembler file of the program is changed to call these instead of memcpy, memmove and memset.
extern "C" void* cuda_emulator_memcpy(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) {
    access(Address(from), bytes, 1, Kind::read, PC);
    access(Address(to), bytes, 1, Kind::write, PC);
  }
  return std::memcpy(to, from, bytes);
}
extern "C" void* cuda_emulator_memmove(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) {
    access(Address(from), bytes, 1, Kind::read, PC);
    access(Address(to), bytes, 1, Kind::write, PC);
  }
  return std::memmove(to, from, bytes);
}
extern "C" void* cuda_emulator_memset(void* to, int value, std::size_t bytes) {
  if (bytes > 0) access(Address(to), bytes, 1, Kind::write, PC);
  return std::memset(to, value, bytes);
}
