#include "memory.h"

#include <cxxabi.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace cuda_emulator {

namespace {

// How many bytes of addresses are reserved. If the process may not reserve them, it tries half of
// that, and so on.
constexpr std::size_t most_arena_bytes = std::size_t{64} << 30;
constexpr std::size_t least_arena_bytes = std::size_t{256} << 20;
constexpr std::size_t gap = 1 << 20;    // between buffers, never mapped
constexpr std::size_t page = 64 << 10;  // a multiple of the page size of every system

// tools/cuda_check.py puts padding with this name behind each variable.
constexpr const char* padding_name = "cuda_emulator_padding.";

struct Range {
  Address begin, end;
};

struct Function {
  Address begin;
  std::string name;
};

struct Memory {
  Address arena = 0, next = 0;
  std::size_t arena_bytes = most_arena_bytes;
  // Sorted by begin. A region never moves, because others keep pointers to it.
  std::vector<std::unique_ptr<Region>> globals;
  std::vector<Region> shared;
  std::vector<Range> own, guards;
  std::vector<Range> constants, paddings;  // read-only sections; paddings behind variables
  std::vector<Function> functions;
};

bool has(const Range& range, Address address) {
  return address >= range.begin && address < range.end;
}

bool is_in(const std::vector<Range>& sorted, Address address) {
  auto after = std::upper_bound(sorted.begin(), sorted.end(), address,
                                [](Address a, const Range& range) { return a < range.begin; });
  return after != sorted.begin() && has(*(after - 1), address);
}

Memory& memory() {
  static auto* memory = new Memory;  // never destroyed: exit handlers still need it
  return *memory;
}

std::string demangled(const char* name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : name;
  std::free(text);
  return result;
}

// "transpose(float*, int)::tile" -> "tile"
std::string without_scope(const std::string& name) {
  const std::size_t colon = name.rfind("::");
  return colon == std::string::npos ? name : name.substr(colon + 2);
}

// "_ZZ9transposePfiE4tile" -> "_Z9transposePfi". The array's name comes last, behind its length.
std::string declaring_function(const std::string& mangled) {
  if (mangled.compare(0, 3, "_ZZ") != 0) return "";
  const std::size_t end =
      mangled.rfind('E', mangled.size() - without_scope(demangled(mangled.c_str())).size());
  return end == std::string::npos ? "" : "_Z" + mangled.substr(3, end - 3);
}

int find_thread_locals(dl_phdr_info* info, std::size_t, void* address) {
  *static_cast<Address*>(address) = reinterpret_cast<Address>(info->dlpi_tls_data);
  return 1;  // the first is the program itself
}

// Memory belongs to the emulator if its name is in the emulator's namespace or is one of CUDA's own
// variables. (Tables of virtual functions do not count: all code uses them, and they are
// read-only.)
bool is_own_name(const std::string& mangled) {
  if (mangled.rfind("_ZT", 0) == 0) return false;
  return mangled.find("13cuda_emulator") != std::string::npos || mangled == "threadIdx" ||
         mangled == "blockIdx" || mangled == "blockDim" || mangled == "gridDim" ||
         mangled == "warpSize";
}

// Variables of the C++ library and of the linker, which a kernel cannot name.
bool is_library_name(const std::string& mangled) {
  for (const char* prefix :
       {"_ZT", "_ZSt", "_ZNSt", "_ZNKSt", "_ZZSt", "_ZZNSt", "_ZZNKSt", "_ZGV", "__", "_IO"})
    if (mangled.rfind(prefix, 0) == 0) return true;
  return false;
}

void add_symbol(const ElfW(Sym) & symbol, const char* name, Address thread_locals) {
  const auto type = symbol.st_info & 0xf;
  const Address address = symbol.st_value;
  if (type == STT_FUNC) {
    memory().functions.push_back({address, name});
  } else if (type == STT_TLS && std::strncmp(name, "_ZGV", 4) == 0) {
    const Address begin = thread_locals + address;
    memory().guards.push_back({begin, begin + symbol.st_size});
  } else if (type == STT_TLS && symbol.st_size > 0) {
    Region region;
    region.begin = thread_locals + address;
    region.bytes = symbol.st_size;
    region.space = Space::shared;
    region.name = without_scope(demangled(name));
    region.function = declaring_function(name);
    memory().shared.push_back(std::move(region));
  } else if (type == STT_OBJECT && symbol.st_size > 0 && symbol.st_shndx != SHN_UNDEF) {
    if (std::strncmp(name, padding_name, std::strlen(padding_name)) == 0) {
      memory().paddings.push_back({address, address + symbol.st_size});
    } else if (is_own_name(name)) {
      memory().own.push_back({address, address + symbol.st_size});
    } else if (!is_library_name(name)) {
      auto region = std::make_unique<Region>();
      region->begin = address;
      region->bytes = symbol.st_size;
      region->name = without_scope(demangled(name));
      region->host_may_access = true;
      region->written.assign(region->bytes, 1);
      memory().globals.push_back(std::move(region));
    }
  }
}

void read_symbols() {
  const int file = open("/proc/self/exe", O_RDONLY);
  struct stat status {};
  if (file < 0 || fstat(file, &status) != 0) throw std::runtime_error("cannot read /proc/self/exe");
  const auto size = static_cast<std::size_t>(status.st_size);
  void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) throw std::runtime_error("cannot map /proc/self/exe");
  const char* bytes = static_cast<const char*>(mapped);
  Address thread_locals = 0;
  dl_iterate_phdr(find_thread_locals, &thread_locals);
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(bytes);
  const auto* sections = reinterpret_cast<const ElfW(Shdr)*>(bytes + header->e_shoff);
  const char* section_names = bytes + sections[header->e_shstrndx].sh_offset;
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (std::strncmp(section_names + sections[s].sh_name, ".rodata", 7) == 0)
      memory().constants.push_back(
          {sections[s].sh_addr, sections[s].sh_addr + sections[s].sh_size});
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const char* names = bytes + sections[sections[s].sh_link].sh_offset;
    const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(bytes + sections[s].sh_offset);
    const std::size_t count = sections[s].sh_size / sizeof(ElfW(Sym));
    for (std::size_t i = 0; i < count; ++i)
      add_symbol(symbols[i], names + symbols[i].st_name, thread_locals);
  }
  munmap(mapped, size);
}

}  // namespace

void start_memory() {
  Memory& m = memory();
  void* arena = MAP_FAILED;
  for (; m.arena_bytes >= least_arena_bytes; m.arena_bytes /= 2) {
    arena =
        mmap(nullptr, m.arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena != MAP_FAILED) break;
  }
  if (arena == MAP_FAILED) throw std::runtime_error("cannot reserve addresses for device memory");
  m.arena = reinterpret_cast<Address>(arena);
  m.next = (m.arena + page - 1) / page * page;
  read_symbols();
  auto by_begin = [](const auto& a, const auto& b) { return a.begin < b.begin; };
  std::sort(m.shared.begin(), m.shared.end(), by_begin);
  // All `extern __shared__` arrays are the same bytes.
  auto same = [](const Region& a, const Region& b) { return a.begin == b.begin; };
  m.shared.erase(std::unique(m.shared.begin(), m.shared.end(), same), m.shared.end());
  std::sort(m.own.begin(), m.own.end(), by_begin);
  std::sort(m.paddings.begin(), m.paddings.end(), by_begin);
  std::sort(m.functions.begin(), m.functions.end(), by_begin);
  std::sort(m.globals.begin(), m.globals.end(),
            [](const auto& a, const auto& b) { return a->begin < b->begin; });
}

const std::vector<Region>& shared_arrays() { return memory().shared; }

bool is_dynamic(const Region& shared_array) { return shared_array.bytes == dynamic_bytes; }

void device_memory_left(std::size_t& free, std::size_t& all) {
  const Memory& m = memory();
  all = m.arena_bytes;
  free = m.arena + m.arena_bytes - m.next;
}

bool in_device_arena(Address address) {
  return address >= memory().arena && address < memory().arena + memory().arena_bytes;
}

Region* nearest_global(Address address) {
  auto& globals = memory().globals;
  auto after = std::upper_bound(globals.begin(), globals.end(), address,
                                [](Address a, const auto& region) { return a < region->begin; });
  return after == globals.begin() ? nullptr : (after - 1)->get();
}

Region* find_global(Address address) {
  static Region* last = nullptr;
  if (last != nullptr && address >= last->begin && address < last->end()) return last;
  Region* region = nearest_global(address);
  if (region == nullptr || address >= region->end()) return nullptr;
  return last = region;
}

Region* find_in(std::vector<Region>& regions, Address address) {
  auto after = std::upper_bound(regions.begin(), regions.end(), address,
                                [](Address a, const Region& region) { return a < region.begin; });
  if (after == regions.begin() || address >= (after - 1)->end()) return nullptr;
  return &*(after - 1);
}

// The mangled name of the function that begins there; empty if none does.
static const std::string& mangled_name(Address address) {
  static const std::string none;
  const auto& functions = memory().functions;
  auto found = std::lower_bound(functions.begin(), functions.end(), address,
                                [](const Function& f, Address a) { return f.begin < a; });
  return found == functions.end() || found->begin != address ? none : found->name;
}

std::string function_name(Address address) {
  const std::string& mangled = mangled_name(address);
  if (mangled.empty()) return "a kernel";
  std::string name = demangled(mangled.c_str());
  // "void scale<float>(float*)" -> "scale<float>"
  unsigned depth = 0;
  std::size_t begin = 0, end = name.size();
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (depth > 0) continue;
    if (name[i] == ' ' && end == name.size()) begin = i + 1;
    if (name[i] == '(' && name.compare(i, 11, "(anonymous ") != 0) {
      end = i;
      break;
    }
    if (name.compare(i, 21, "(anonymous namespace)") == 0) {
      i += 22;
      begin = i + 1;
    }
  }
  return name.substr(begin, end - begin);
}

void note_use_of_shared(std::size_t index, std::uint32_t block) {
  memory().shared[index].generation = block;
}

std::size_t static_shared_bytes(Address kernel, std::uint32_t first_block) {
  const std::string& function = mangled_name(kernel);
  std::size_t bytes = 0;
  for (const Region& region : memory().shared)
    if (!is_dynamic(region) && (region.function == function || region.generation >= first_block))
      bytes += region.bytes;
  return bytes;
}

void* allocate(std::size_t bytes, bool managed, Address pc) {
  Memory& m = memory();
  const std::size_t mapped = (bytes + page - 1) / page * page;
  if (bytes > m.arena_bytes || mapped + gap > m.arena + m.arena_bytes - m.next) return nullptr;
  void* begin = reinterpret_cast<void*>(m.next);
  if (mprotect(begin, mapped, PROT_READ | PROT_WRITE) != 0) return nullptr;
  std::memset(begin, 0xff, bytes);  // NaN, so that a read of unwritten memory shows in the result
  auto region = std::make_unique<Region>();
  region->begin = m.next;
  region->bytes = bytes;
  region->name =
      "#" + std::to_string(pc) + "#";  // the reader finds the variable's name on that line
  region->host_may_access = managed;
  region->written.assign(bytes, 0);
  m.next += mapped + gap;
  auto place = std::upper_bound(m.globals.begin(), m.globals.end(), region->begin,
                                [](Address a, const auto& other) { return a < other->begin; });
  m.globals.insert(place, std::move(region));
  return begin;
}

void open_device_memory(bool open) {
  for (const auto& region : memory().globals) {
    if (region->freed || region->host_may_access || !in_device_arena(region->begin)) continue;
    const std::size_t mapped = (region->bytes + page - 1) / page * page;
    mprotect(reinterpret_cast<void*>(region->begin), mapped,
             open ? PROT_READ | PROT_WRITE : PROT_NONE);
  }
}

bool release(void* pointer) {
  Region* region = find_global(reinterpret_cast<Address>(pointer));
  if (region == nullptr || region->begin != reinterpret_cast<Address>(pointer) || region->freed ||
      !in_device_arena(region->begin))
    return false;
  region->freed = true;  // its addresses are never used again, so a later access is found
  region->written = {};
  region->cells = {};
  region->atomics = {};
  madvise(pointer, region->bytes, MADV_DONTNEED);
  return true;
}

void set_written(Region& region, Address begin, std::size_t bytes) {
  std::memset(region.written.data() + (begin - region.begin), 1, bytes);
}

bool any_written(const Region& region, Address begin, std::size_t bytes) {
  return std::memchr(region.written.data() + (begin - region.begin), 1, bytes) != nullptr;
}

bool all_written(const Region& region, Address begin, std::size_t bytes) {
  return std::memchr(region.written.data() + (begin - region.begin), 0, bytes) == nullptr;
}

void make_cells(Region& region, Address begin, std::size_t bytes) {
  const Address offset = begin - region.begin;
  unsigned granule = region.granule;
  while (offset % granule != 0 || bytes % granule != 0) granule /= 2;
  if (region.cells.empty()) {
    region.cells.resize((region.bytes + granule - 1) / granule);
  } else if (granule != region.granule) {
    const unsigned times = region.granule / granule;
    std::vector<Cell> finer;
    finer.reserve(region.cells.size() * times);
    for (const Cell& cell : region.cells)
      for (unsigned i = 0; i < times; ++i) {
        finer.push_back(cell);
        if (cell.atomics == 0 || i == 0) continue;
        finer.back().atomics = 0;
        const Atomics same = region.atomics[cell.atomics - 1];
        atomics_of(region, finer.back()) = same;
      }
    region.cells = std::move(finer);
  }
  region.granule = granule;
}

Atomics& atomics_of(Region& region, Cell& cell) {
  if (cell.atomics == 0) {
    region.atomics.emplace_back();
    cell.atomics = static_cast<std::uint32_t>(region.atomics.size());
  }
  return region.atomics[cell.atomics - 1];
}

bool is_own(Address address) { return is_in(memory().own, address); }

bool is_read_only(Address address) {
  return std::ranges::any_of(memory().constants,
                             [=](const Range& range) { return has(range, address); });
}

bool is_constant(Address address) {
  return is_read_only(address) && !is_in(memory().paddings, address);
}

bool is_guard(Address address) {
  return std::ranges::any_of(memory().guards,
                             [=](const Range& guard) { return has(guard, address); });
}

}  // namespace cuda_emulator
