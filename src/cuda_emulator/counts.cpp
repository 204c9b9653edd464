// Counts the memory requests that a GPU would make. A request is one execution of an instruction by
// a warp: the k-th time that each of its lanes executes it since the lanes last met (barrier,
// shuffle, vote).
//
//   global   sectors: 32-byte pieces that the request touches; ideal: the fewest sectors that its
//            distinct bytes could fill
//   shared   conflicts: how often a request must wait, because two different words lie in the same
//            one of 32 banks. As on the hardware, requests of 8 bytes per lane are executed as two
//            half warps, of 16 bytes as four quarters
#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "machine.h"

// Code that is added to the assembler file of the program counts its arithmetic here, one per
// rounded operation.
extern "C" {
unsigned long long cuda_emulator_flops = 0;
}

namespace cuda_emulator {

namespace {

struct LineCount {
  std::uint64_t requests = 0, sectors = 0, ideal = 0, conflicts = 0, bytes = 0;
};

enum class Way { read, write, atomic };

std::map<std::tuple<Address, Space, Way>, LineCount>& lines() {
  static auto* lines = new std::map<std::tuple<Address, Space, Way>, LineCount>;
  return *lines;
}

std::uint64_t counted_flops = 0, touched_bytes = 0;

// A lane in a loop that does not end makes requests that no other lane joins. Beyond this number,
// they are not counted, so they take at most 170 MB.
constexpr std::size_t most_pending = std::size_t{1} << 19;
std::size_t n_pending = 0;

std::vector<std::unique_ptr<Request>>& free_requests() {
  static auto* requests = new std::vector<std::unique_ptr<Request>>;
  return *requests;
}

std::unique_ptr<Request> take_request() {
  auto& requests = free_requests();
  if (requests.empty()) return std::make_unique<Request>();
  auto request = std::move(requests.back());
  requests.pop_back();
  request->lanes = 0;
  return request;
}

constexpr unsigned most_words = 5;  // that 16 bytes lie in, at any address

// Conflicts between the words of 4 bytes that lanes [begin, end) access. Each word counts once.
unsigned conflicts_of(const Request& request, unsigned begin, unsigned end) {
  Address words[warp_size * most_words], *behind = words;
  for (unsigned lane = begin; lane < end; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    for (Address word = request.address[lane] / 4;
         word <= (request.address[lane] + request.bytes[lane] - 1) / 4; ++word)
      *behind++ = word;
  }
  if (!std::is_sorted(words, behind)) std::sort(words, behind);
  unsigned per_bank[32] = {}, most = 0;
  for (const Address* word = words; word != behind; ++word)
    if (word == words || *word != word[-1]) most = std::max(most, ++per_bank[*word % 32]);
  return most == 0 ? 0 : most - 1;
}

void count_shared(const Request& request, unsigned bytes, LineCount& line) {
  const unsigned group = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  for (unsigned begin = 0; begin < warp_size; begin += group)
    line.conflicts += conflicts_of(request, begin, begin + group);
}

void count_global(const Request& request, LineCount& line) {
  std::pair<Address, Address> spans[warp_size], *behind = spans;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    if (request.lanes >> lane & 1)
      *behind++ = {request.address[lane], request.address[lane] + request.bytes[lane]};
  if (!std::is_sorted(spans, behind)) std::sort(spans, behind);
  Address covered = 0, next_sector = 0;
  std::uint64_t distinct = 0;
  for (const auto& [begin, end] : std::span(spans, behind)) {
    if (end > covered) distinct += end - std::max(begin, covered);
    covered = std::max(covered, end);
    const Address first = std::max(begin / 32, next_sector), last = (end - 1) / 32;
    if (last >= first) line.sectors += last - first + 1;
    next_sector = std::max(next_sector, last + 1);
  }
  line.ideal += (distinct + 31) / 32;
}

void count(const PendingRequests& pending, const Request& request) {
  const Way way = pending.atomic ? Way::atomic : pending.write ? Way::write : Way::read;
  LineCount& line = lines()[{pending.pc, pending.space, way}];
  ++line.requests;
  unsigned widest = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (!(request.lanes >> lane & 1)) continue;
    line.bytes += request.bytes[lane];
    widest = std::max<unsigned>(widest, request.bytes[lane]);
  }
  if (pending.space == Space::shared)
    count_shared(request, widest, line);
  else
    count_global(request, line);
}

void count_and_free(const PendingRequests& pending, std::unique_ptr<Request>& request) {
  count(pending, *request);
  free_requests().push_back(std::move(request));
  --n_pending;
}

PendingRequests& pending_of(Warp& warp, Address pc, Space space, bool write, bool atomic) {
  // Most lanes execute the same instructions in the same order. So the search begins behind the
  // instruction that was found last.
  const std::size_t n = warp.pending.size();
  for (std::size_t i = 1; i <= n; ++i) {
    const std::size_t at = (warp.last_pending + i) % n;
    PendingRequests& pending = warp.pending[at];
    if (pending.pc != pc || pending.space != space || pending.write != write) continue;
    warp.last_pending = at;
    return pending;
  }
  warp.last_pending = n;
  PendingRequests& pending = warp.pending.emplace_back();
  pending.pc = pc;
  pending.space = space;
  pending.write = write;
  pending.atomic = atomic;
  return pending;
}

}  // namespace

void count_access(Thread& thread, Space space, Address address, unsigned bytes, bool write,
                  bool atomic, Address pc) {
  Warp& warp = warp_of(thread);
  PendingRequests& pending = pending_of(warp, pc, space, write, atomic);
  const std::uint32_t number = pending.made[thread.lane()]++ - pending.first;
  if (number >= pending.requests.size()) {
    if (n_pending >= most_pending) return;
    n_pending += number + 1 - pending.requests.size();
    while (pending.requests.size() <= number) pending.requests.push_back(take_request());
  }
  Request& request = *pending.requests[number];
  request.lanes |= 1u << thread.lane();
  request.bytes[thread.lane()] = static_cast<std::uint8_t>(bytes);
  request.address[thread.lane()] = address;
  while (!pending.requests.empty() && (warp.live & ~pending.requests.front()->lanes) == 0) {
    count_and_free(pending, pending.requests.front());
    pending.requests.pop_front();
    ++pending.first;
  }
}

void count_pending(Block&, Warp& warp) {
  for (PendingRequests& pending : warp.pending)
    for (auto& request : pending.requests) count_and_free(pending, request);
  warp.pending.clear();
}

void count_first_touch(unsigned bytes) { touched_bytes += bytes; }

void begin_counts() {
  counted_flops = cuda_emulator_flops;  // host code does not count
  n_pending = 0;                        // a launch that was ended keeps none
}

void count_launch(const Launch& launch, std::uint32_t first_block) {
  const auto address = reinterpret_cast<Address>(launch.kernel);
  std::string text = "launch\t" + function_name(address);
  auto add = [&](std::uint64_t number) { text += "\t" + std::to_string(number); };
  add(std::uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z);
  add(launch.block.x * launch.block.y * launch.block.z);
  add(launch.shared_bytes + static_shared_bytes(address, first_block));
  add(cuda_emulator_flops - counted_flops);
  add(touched_bytes);
  text += "\n";
  for (const auto& [key, line] : lines()) {
    const auto& [pc, space, way] = key;
    const char* ways[] = {"read", "write", "atomic"};
    text += "line\t" + at(pc) + "\t" + (space == Space::global ? "global" : "shared") + "\t" +
            ways[static_cast<int>(way)];
    for (std::uint64_t n : {line.requests, line.sectors, line.ideal, line.conflicts, line.bytes})
      add(n);
    text += "\n";
  }
  touched_bytes = 0;
  lines().clear();
  write_report(text);
}

}  // namespace cuda_emulator
