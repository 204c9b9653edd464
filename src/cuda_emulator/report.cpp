// Writes each finding, and the counts of each launch, at once into the file that CUDA_CHECK_REPORT
// names; at the end of the program, how often there was each finding. tools/cuda_check.py reads
// this file, and finds the source lines in the debug information.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include "machine.h"

namespace cuda_emulator {

namespace {

using Key = std::tuple<std::string, Address, Address>;

struct Report {
  int file = -1;
  bool done = false;
  std::string kept;  // the report of a program without CUDA_CHECK_REPORT
  std::map<Key, std::pair<std::size_t, std::uint64_t>>
      findings;  // the number of the finding, and how often it was found
};

Report& report() {
  static auto* report = new Report;
  return *report;
}

constexpr std::size_t max_findings = 1000;

std::string times() {
  std::string text;
  for (const auto& [key, finding] : report().findings)
    text +=
        "times\t" + std::to_string(finding.first) + "\t" + std::to_string(finding.second) + "\n";
  return text;
}

void end_report(const std::string& end) {
  if (report().done) return;
  report_unconfirmed_reads();
  write_report(times() + "end\t" + end + "\n");
  report().done = true;
}

void at_exit() {
  if (current != nullptr)
    finding("crash", current->last_pc, 0, describe(*current) + " ends the program");
  end_report("exit");
}

void on_time_limit(int signal) {
  if (current != nullptr)
    finding(
        "no end", current->last_pc, 0,
        describe(*current) +
            " was still running at the time limit; this was its last access that the checker saw");
  end_report("signal " + std::to_string(signal));
  _exit(128 + signal);
}

// The handler runs on a separate stack, because the thread of a kernel may have used up its stack.
void on_signal(int signal) {
  if (current != nullptr) {
    const bool stack = signal == SIGSEGV || signal == SIGBUS;
    finding("crash", current->last_pc, 0,
            describe(*current) +
                (stack ? " uses memory that does not exist, or more than 128 KiB of stack"
                 : signal == SIGFPE ? " divides by zero"
                                    : " ends the program") +
                "; this was its last access that the checker saw");
  }
  end_report("signal " + std::to_string(signal));
  _exit(128 + signal);
}

__attribute__((constructor)) void start() {
  start_memory();
  const char* path = std::getenv("CUDA_CHECK_REPORT");
  if (path == nullptr) return;
  report().file = open(path, O_WRONLY | O_CLOEXEC);
  unsetenv("CUDA_CHECK_REPORT");
  std::atexit(at_exit);
  stack_t stack{};
  stack.ss_size = 1 << 20;
  stack.ss_sp =
      mmap(nullptr, stack.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_ONSTACK;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &action, nullptr);
  action.sa_handler = on_time_limit;
  sigaction(SIGTERM, &action, nullptr);
}

std::string triple(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

}  // namespace

void write_report(const std::string& text) {
  if (report().done) return;
  if (report().file < 0) {
    report().kept += text;
    return;
  }
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t n = write(report().file, text.data() + written, text.size() - written);
    if (n <= 0) break;
    written += static_cast<std::size_t>(n);
  }
}

std::string take_kept_report() {
  std::string text = std::move(report().kept) + times();
  report().kept.clear();
  report().findings.clear();
  return text;
}

bool found_again(const char* kind, Address pc, Address other_pc) {
  auto& findings = report().findings;
  auto same = findings.find(Key(kind, pc, other_pc));
  if (same == findings.end()) same = findings.find(Key(kind, other_pc, pc));
  if (same == findings.end()) return false;
  ++same->second.second;
  return true;
}

void finding(const char* kind, Address pc, Address other_pc, const std::string& text,
             std::uint64_t times) {
  auto& findings = report().findings;
  if (found_again(kind, pc, other_pc) || findings.size() >= max_findings) return;
  findings[Key(kind, pc, other_pc)] = {findings.size(), times};
  const std::string where =
      launch == nullptr
          ? ""
          : "kernel " + function_name(reinterpret_cast<Address>(launch->kernel)) + ": ";
  write_report(std::string("finding\t") + kind + "\t" + at(pc) + "\t" + where + text + "\n");
}

std::string at(Address pc) {
  char text[32];
  // A return address is behind the call and may belong to the next line. One byte less is inside
  // the call.
  std::snprintf(text, sizeof text, "@%llx@", static_cast<unsigned long long>(pc == 0 ? 0 : pc - 1));
  return pc == 0 ? "" : text;
}

std::string describe(std::uint32_t thread_id) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned block = thread_id / threads, thread = thread_id % threads;
  return "thread " +
         triple(thread % blockDim.x, thread / blockDim.x % blockDim.y,
                thread / blockDim.x / blockDim.y) +
         " of block " +
         triple(block % gridDim.x, block / gridDim.x % gridDim.y, block / gridDim.x / gridDim.y);
}

std::string describe(const Thread& thread) { return describe(thread.id); }

std::string place(const Region& region, Address address, unsigned bytes) {
  const Address offset = address - region.begin;
  const std::string size = " (" + std::to_string(bytes) + (bytes == 1 ? " byte)" : " bytes)");
  if (bytes > 0 && offset % bytes == 0)
    return region.name + "[" + std::to_string(offset / bytes) + "]" + size;
  return region.name + " at byte " + std::to_string(offset) + size;
}

}  // namespace cuda_emulator
