#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::stages {

// What a confined command may do (docs/confinement.md says what each system supports). It cannot
// read, write, execute or signal anything else on the machine, and it has no network.
struct Confinement {
  std::vector<std::filesystem::path> reads;     // files, and folders with all below them
  std::vector<std::filesystem::path> programs;  // may be executed and read
  std::vector<std::filesystem::path> writes;    // existing files, and folders to make files in
  bool starts_processes = false;                // as a compiler does; else only threads
  // For a trusted program that starts confined commands itself, as the gate does: it gets only the
  // limits, and may give other limits to what it starts.
  bool limits_only = false;

  // Limits; 0: no limit.
  unsigned seconds = 10;                          // wall-clock time; also CPU time per process
  std::uint64_t memory = std::uint64_t{2} << 30;  // bytes of address space per process
  // Bytes of real memory of the command, for a program whose address space says nothing
  // (AddressSanitizer); 0: no limit.
  std::uint64_t resident = 0;
  std::uint64_t file = std::uint64_t{64} << 20;  // bytes per file that it writes
  unsigned open_files = 64;
  unsigned processes = 512;  // and threads, in addition to those that already run
};

// Empty if commands can be confined completely; else the missing part, for a person. The limits
// hold on every system.
std::string not_confined_because();

// The files that a program reads to start: its shared libraries, and none that it only knows by
// name. The loader lists them; the program itself does not run.
std::vector<std::filesystem::path> libraries_of(const std::filesystem::path& program);
std::filesystem::path own_loader();  // the loader, which executes a program with shared libraries

struct Command {
  std::vector<std::string> words;        // the first is the path of the program
  std::vector<std::string> environment;  // "NAME=value", the whole environment
  int output = -1;                       // file for stdout and stderr; -1: those of this process
};

// Runs a command to its end, confined as far as this machine can. Returns its status, as from
// waitpid, or nullopt if it exceeded its time or its real memory. `seconds` receives the CPU time
// of the command and all its threads, measured by the kernel. No process that the command started
// is left if it was confined; otherwise none of its process group. Throws Error if it cannot be
// started.
std::optional<int> run_confined(const Command& command, const Confinement& confinement,
                                double* seconds = nullptr);

// From this call on, this process ends when `parent`, which started it, ends, or at SIGTERM, SIGINT
// or SIGHUP. The command that run_confined is running then ends, too, with everything it started. A
// command that ends by itself leaves no process either. For a program that has no other children.
// (On Linux; elsewhere these signals end the process group of the command.) Throws Error if
// `parent` has already ended.
void end_with(int parent);

// For a judge: other processes of the same user cannot read or write its memory.
void guard_own_memory();

}  // namespace stagecraft::stages
