#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stagecraft::stages {

// What a confined command may do (docs/confinement.md says what holds where). Everything else of
// the machine it cannot read, write, execute or signal, and there is no network.
struct Confinement {
  std::vector<std::filesystem::path> reads;     // files; of a folder, all that is below
  std::vector<std::filesystem::path> programs;  // to execute; read as well
  std::vector<std::filesystem::path> writes;    // files that exist; in a folder, files of any name
  bool starts_processes = false;                // as a compiler does; else threads only
  // For what is trusted and starts confined commands of its own, as the gate does: it has the
  // limits and nothing else of all this, and may give what it starts others.
  bool limits_only = false;

  // Limits; 0 is none.
  unsigned seconds = 10;                          // of wall time, and of CPU time of a process
  std::uint64_t memory = std::uint64_t{2} << 30;  // bytes of addresses of a process
  // Bytes of real memory of the command, where its addresses say nothing (AddressSanitizer); 0:
  // any.
  std::uint64_t resident = 0;
  std::uint64_t file = std::uint64_t{64} << 20;  // bytes of a file that it writes
  unsigned open_files = 64;
  unsigned processes = 512;  // and threads, beside those that the machine runs at the start
};

// Empty where all of it holds; else what is missing here, for a person. The limits hold anywhere.
std::string not_confined_because();

// What a program reads to start: its shared libraries and no others, though it may know the names
// of others. The loader lists them; nothing of the program runs.
std::vector<std::filesystem::path> libraries_of(const std::filesystem::path& program);
std::filesystem::path own_loader();  // what executes a program that has shared libraries

struct Command {
  std::vector<std::string> words;        // the first: the path of the program
  std::vector<std::string> environment;  // "NAME=value": all of it
  int output = -1;                       // where stdout and stderr go; -1: as here
};

// Runs a command to its end, confined as far as this machine can. Its status as of waitpid, or
// nullopt if it took more than its time. `seconds` becomes the processor time that the kernel
// charged to it and all its threads, in whatever order they ran. Nothing that it started is left,
// if it was confined; else nothing of its process group. Throws Error if it cannot be started.
std::optional<int> run_confined(const Command& command, const Confinement& confinement,
                                double* seconds = nullptr);

// From here on the end of `parent`, which started this process, ends this process, and with it what
// run_confined is running then, and all that was started by that; so do SIGTERM, SIGINT and SIGHUP.
// A command that ends leaves nothing running either. For a program that has no other children.
// (On Linux; elsewhere these signals end the group of the command.) Throws Error if `parent` is
// gone already.
void end_with(int parent);

// For a judge: its memory cannot be read or written by other processes of the same user.
void guard_own_memory();

}  // namespace stagecraft::stages
