#pragma once

#include <sys/types.h>

#include <filesystem>

#include "course/judge/scratch_folder.h"
#include "course/judge/worker_process.h"

namespace stagecraft::stages {

// A request in a file, so that many workers can be asked with it, one after the other.
class WrittenRequest {
 public:
  explicit WrittenRequest(const Request& request);

  std::filesystem::path question() const { return folder_ / "request"; }
  std::filesystem::path answer() const { return folder_ / "response"; }
  std::size_t most_bytes() const { return most_bytes_; }  // of an answer

 private:
  ScratchFolder folder_;
  std::size_t most_bytes_;
};

// A worker of the catalogue that answers many requests. It is ours, so it runs without a sandbox.
// With --serve, it forks a process for each request: ten times faster than starting a program. Each
// request finds fresh memory, as in a student's worker.
class KnownWorker {
 public:
  explicit KnownWorker(const std::filesystem::path& program);
  ~KnownWorker();
  KnownWorker(const KnownWorker&) = delete;
  KnownWorker& operator=(const KnownWorker&) = delete;

  // Throws Error if the worker itself has ended.
  Outcome ask(const WrittenRequest& request);

 private:
  std::filesystem::path program_;
  pid_t process_ = -1;
  int orders_ = -1;    // one line per request: the paths of question and answer
  int statuses_ = -1;  // one int per request, as from waitpid
};

}  // namespace stagecraft::stages
