#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// Bytes of numbers that an answer may have in addition to a copy of its inputs.
inline constexpr std::size_t kMostAnswerBytes = std::size_t{4} << 20;
// Bytes that a worker may print. One limit of file size holds for its answer and its prints.
inline constexpr std::size_t kMaxPrinted = std::size_t{16} << 20;
// From this size on, printing takes seconds, and only the first few lines are shown.
inline constexpr std::size_t kMuchPrinted = std::size_t{1} << 20;

// The outcome of one run of a worker.
struct Outcome {
  enum class Kind { Answered, Crashed, Hung, Exited, NoAnswer };
  Kind kind = Kind::Answered;
  Response response;    // of Answered; its numbers are dropped if they are right
  std::string detail;   // a signal's name, an exit code, seconds, or why the answer cannot be read
  std::string printed;  // the beginning of what it wrote to stdout and stderr
  std::size_t printed_bytes = 0;  // of all that it wrote there
  bool printed_too_much = false;  // Crashed because of this
  double seconds = 0.0;           // CPU time, as measured by the kernel

  // True if the code crashed when it converted NaN or a too large number to an integer: students'
  // code is compiled with traps for this (course/cmake/stages.cmake).
  bool stopped_by_a_trap() const;
  bool divided_by_zero() const;  // true if it crashed when it divided a whole number by 0
};

// Starts `worker` with the request as a process of its own, in a sandbox with limits of time,
// memory and output. most: bytes of numbers that an answer may have in addition to a copy of its
// inputs.
Outcome run_worker(const std::filesystem::path& worker, const Request& request,
                   std::size_t most = kMostAnswerBytes);
// The same for a race (speed.h): the worker gets its full seconds, however long all workers took so
// far, and they do not count.
Outcome run_in_race(const std::filesystem::path& worker, const Request& request);

// Seconds of wall-clock time that workers took so far. If this gate starts another one, the other
// continues from this number (STAGE_SPENT), and its time is added here.
double spent_on_workers();
void count_as_spent(double seconds);

// The outcome that follows from a worker's status, as from waitpid, and from the file of its
// answer. No status: it took more than `seconds`. most: bytes that the file may have.
Outcome outcome_of(std::optional<int> status, const std::filesystem::path& response,
                   unsigned seconds, std::size_t most);
// Bytes that an answer may have: a copy of every input, `numbers` bytes of numbers, and a header.
std::size_t most_bytes(const Request& request, std::size_t numbers);
// Seconds that a worker may take for a request: STAGE_SECONDS, or 10.
unsigned seconds_of_a_worker();

}  // namespace stagecraft::stages
