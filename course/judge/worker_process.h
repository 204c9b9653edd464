#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// Bytes of numbers that an answer may have beside its inputs, whatever a student's code does.
inline constexpr std::size_t kMostNumbers = std::size_t{4} << 20;
// Bytes that a worker may print; its answer and what it prints are files, and have one limit.
inline constexpr std::size_t kMaxPrinted = std::size_t{16} << 20;

// What became of one run of a worker.
struct Outcome {
  enum class Kind { Answered, Crashed, Hung, Exited, NoAnswer };
  Kind kind = Kind::Answered;
  Response response;    // of Answered; dropped once it is judged to be right
  std::string detail;   // a signal's name, an exit code, seconds, or why the answer can't be read
  std::string printed;  // what it wrote to stdout and stderr, cut to its beginning
  bool printed_too_much = false;  // Crashed for that reason; printed is then a few lines
  double seconds = 0.0;           // of processor time, by the kernel's account

  // Crashed where it made an integer of NaN or of a number that is too large for it: students' code
  // is compiled with traps for that (course/cmake/stages.cmake).
  bool stopped_by_a_trap() const;
};

// Starts `worker` on the request in a process of its own, under limits of time, memory and output.
// most: bytes of numbers that an answer may have, beside those of the request.
Outcome run_worker(const std::filesystem::path& worker, const Request& request,
                   std::size_t most = kMostNumbers);

// Seconds by the clock that workers took so far. Another gate that this one starts goes on from
// there (STAGE_SPENT), and what it takes counts here.
double spent_on_workers();
void count_as_spent(double seconds);

// What the status of a worker, as of waitpid, and the file of its answer say. No status: it took
// more than these seconds. most: bytes that the file may have.
Outcome outcome_of(std::optional<int> status, const std::filesystem::path& response,
                   unsigned seconds, std::size_t most);
// Bytes that an answer may have: a copy of every input, so many bytes of numbers, and a header.
std::size_t most_bytes(const Request& request, std::size_t numbers);
// The seconds that a worker has for a request: STAGE_SECONDS, or 10.
unsigned seconds_of_a_worker();

}  // namespace stagecraft::stages
