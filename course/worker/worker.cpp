// The worker: one program per stage, linked with the student's files for that stage and ours for
// the others. It reads a request, calls the function and writes the outputs. It knows no right
// answer.
//
//   worker REQUEST RESPONSE
//   worker --serve           for mistakes of the catalogue: each line of stdin is SECONDS "REQUEST"
//                            "RESPONSE"; each int on stdout is the status of the process that
//                            answered it
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/not_implemented.h"
#include "course/worker/calls.h"
#include "course/worker/kept_memory.h"
#include "course/worker/stopped_thread.h"

namespace stagecraft::stages {
namespace {

// Adds the answer of call `number`; returns false if there is none.
bool answer_one(const Call& call, const Request& one, std::size_t number, Response& response) {
  Arguments args(one);
  try {
    const Stoppable stoppable(true);
    call(args);
  } catch (const NotImplemented& unwritten) {
    response.status = Response::Status::NotWritten;
    response.message = unwritten.what();
    return false;
  } catch (const Error& error) {
    response.status = Response::Status::Refused;
    response.message = error.what();
    return false;
  } catch (const std::exception& error) {
    response.status = Response::Status::Threw;
    response.message = *error.what() == '\0' ? "(no message)" : error.what();
    return false;
  } catch (...) {
    response.status = Response::Status::Threw;  // no std::exception, so it has no message
    return false;
  }
  args.collect(number, response);
  return true;
}

bool same_bits(const Response& one, const Response& other) {
  return one.status == other.status && one.overrun == other.overrun &&
         one.changed_input == other.changed_input &&
         std::ranges::equal(one.outputs, other.outputs, [](const auto& a, const auto& b) {
           const std::vector<float>& x = a.second.values;
           const std::vector<float>& y = b.second.values;
           return a.first == b.first && x.size() == y.size() &&
                  (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0);
         });
}

// A call that is repeated while another thread makes calls, too.
class Repeated {
 public:
  Repeated(const Call& call, const Request& request, std::size_t number)
      : call_(call), request_(request.call(number)), number_(number) {}

  // Repeats the call while again() is true, until an answer differs from the first.
  template <class Again>
  void run(Again again) {
    if (!first_) first_ = answer();
    while (is_one() && first_->status == Response::Status::Done && again()) {
      Response next = answer();
      if (!same_bits(*first_, next)) other_ = std::move(next);
    }
  }

  // True if all answers were the same.
  bool is_one() const { return !other_; }

  // Called when no other thread makes calls: if there were two answers, returns the one that a call
  // does not give now.
  Response response() const { return other_ && same_bits(*first_, answer()) ? *other_ : *first_; }

 private:
  Response answer() const {
    Response one;
    answer_one(call_, request_, number_, one);
    return one;
  }

  const Call& call_;
  Request request_;
  std::size_t number_;
  std::optional<Response> first_;
  std::optional<Response> other_;
};

// Makes both calls at the same time until they have overlapped kMeetings times: one ended while the
// other ran. On a busy machine they rarely overlap.
void call_side_by_side(Repeated& first, Repeated& second) {
  using std::chrono::steady_clock;
  constexpr std::size_t kMeetings = 64;
  constexpr std::chrono::milliseconds kMostTime{50};
  const auto end = steady_clock::now() + kMostTime;
  std::array<std::atomic<std::size_t>, 2> ended = {};
  std::atomic<std::size_t> meetings = 0;
  std::atomic<bool> enough = false;
  const auto run = [&](Repeated& mine, std::size_t me) {
    std::size_t seen = 0;
    mine.run([&] {
      ++ended[me];
      const std::size_t now = ended[1 - me];
      if (std::exchange(seen, now) != now) ++meetings;
      return !enough && meetings < kMeetings && steady_clock::now() < end;
    });
    enough = true;
  };
  std::thread thread;
  try {
    thread = std::thread([&] { run(second, 1); });
  } catch (const std::system_error&) {  // no thread is left: one after the other
    run(first, 0);
    return run(second, 1);
  }
  run(first, 0);
  thread.join();
}

// Runs the second call in a thread of its own, and makes the first one in the middle of it.
void call_inside(Repeated& first, Repeated& second) {
  std::atomic<bool> enough = false;
  std::atomic<std::size_t> calls = 0;
  std::atomic<bool> ended = false;
  std::thread thread;
  try {
    thread = std::thread([&] {
      second.run([&] {
        ++calls;
        return !enough;
      });
      ended = true;
    });
  } catch (const std::system_error&) {
    return;  // no thread is left
  }
  {
    StoppedThread stopped(thread.native_handle(), calls, ended);
    first.run([&] { return stopped.stop_again(); });
  }
  enough = true;
  thread.join();
}

// Side by side finds data that are shared for an instant, if two processors are free. One call
// inside the other finds data that are shared for longer, on any machine.
Response answer_at_once(const Call& call, const Request& request) {
  Repeated first(call, request, 1);
  Repeated second(call, request, 2);
  call_side_by_side(first, second);
  if (first.is_one() && second.is_one()) call_inside(first, second);
  Response all = first.response();
  if (all.status != Response::Status::Done) return all;
  Response other = second.response();
  if (other.status != Response::Status::Done) return other;
  all.outputs.merge(other.outputs);
  if (all.overrun.empty()) {
    all.overrun = other.overrun;
    all.overrun_side = other.overrun_side;
  }
  if (all.changed_input.empty()) all.changed_input = other.changed_input;
  return all;
}

Response answer(const Request& request) {
  const Call call = find_call(request.function);
  if (request.at_once) return answer_at_once(call, request);
  Response response;
  for (std::size_t n = 1; n <= request.n_calls(); ++n) {
    if (!answer_one(call, request.call(n), n, response)) break;
  }
  return response;
}

void answer_files(const char* request, const char* response) {
  answer(Request::read(request)).write(response);
}

// The limits of a process of --serve. It has no sandbox, because it runs only programs compiled
// from our own files.
void limit(unsigned seconds) {
  constexpr rlim_t kMemory = rlim_t{2} << 30;
  constexpr rlim_t kFile = rlim_t{64} << 20;
  const rlimit time{seconds, seconds + 1};
  const rlimit none{0, 0};
  const rlimit file{kFile, kFile};
  ::setrlimit(RLIMIT_CPU, &time);
  ::setrlimit(RLIMIT_CORE, &none);
  ::setrlimit(RLIMIT_FSIZE, &file);
#if !defined(__SANITIZE_ADDRESS__)
  const rlimit memory{kMemory, kMemory};
  ::setrlimit(RLIMIT_AS, &memory);
#endif
  ::alarm(seconds);
}

int serve() {
  unsigned seconds = 0;
  std::string request;
  std::string response;
  while (std::cin >> seconds >> std::quoted(request) >> std::quoted(response)) {
    const pid_t child = ::fork();
    if (child == 0) {
      const int nowhere = ::open("/dev/null", O_RDWR);
      for (const int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nowhere, file);
      limit(seconds);
      answer_files(request.c_str(), response.c_str());
      ::_exit(0);
    }
    int status = 0;
    if (child < 0 || ::waitpid(child, &status, 0) != child) return 1;
    if (::write(STDOUT_FILENO, &status, sizeof status) != sizeof status) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace stagecraft::stages

int main(int argc, char** argv) {
  stagecraft::stages::keep_freed_memory();
  if (argc == 2 && std::string(argv[1]) == "--serve") return stagecraft::stages::serve();
  if (argc != 3) {
    std::fputs("usage: worker REQUEST RESPONSE\n", stderr);
    return 2;
  }
  // Unbuffered, so that a student's prints are kept if the code crashes or hangs next.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  stagecraft::stages::answer_files(argv[1], argv[2]);
  return 0;
}
