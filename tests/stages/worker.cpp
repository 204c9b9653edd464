// The judged: one program a stage, linked with the student's files for that stage and ours for the
// others. Reads a request, calls the function, writes what came out. It knows no right answer.
//
//   worker REQUEST RESPONSE
//   worker --serve           for mistakes of the catalogue: a line "SECONDS REQUEST RESPONSE" of
//   stdin each,
//                            and the status of the process that answered it, an int of stdout each
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/not_implemented.h"
#include "tests/stages/calls.h"

namespace stagecraft::stages {
namespace {

constexpr std::chrono::milliseconds kAtOnce{30};
constexpr std::size_t kRoundsAtOnce = 3;  // at least

std::string suffix(std::size_t call) { return call == 1 ? "" : fmt::format("#{}", call); }

// Adds the answer of one call; returns false where there is none.
bool answer_one(const Call& call, const Request& one, const std::string& name, Response& response) {
  Arguments args(one);
  try {
    call(args);
  } catch (const NotImplemented& unwritten) {
    response.status = Response::Status::NotWritten;
    response.message = unwritten.what();
    return false;
  } catch (const std::exception& error) {
    response.status = Response::Status::Threw;
    response.message = error.what();
    return false;
  } catch (...) {
    response.status = Response::Status::Threw;
    response.message = "something that is no std::exception";
    return false;
  }
  args.collect(name, response);
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

// What a thread answers that asks the same again and again while others ask something else.
Response answer_again(const Call& call, const Request& one, const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + kAtOnce;
  Response first;
  for (std::size_t n = 0; n < kRoundsAtOnce || std::chrono::steady_clock::now() < end; ++n) {
    Response next;
    answer_one(call, one, name, next);
    if (n == 0) first = next;
    if (!same_bits(first, next)) return next;
  }
  return first;
}

Response answer_at_once(const Call& call, const Request& request) {
  std::vector<Response> answers(request.n_calls());
  std::barrier begin(static_cast<std::ptrdiff_t>(answers.size()));
  std::vector<std::thread> threads;
  for (std::size_t n = 1; n <= answers.size(); ++n) {
    threads.emplace_back([&, n] {
      const Request one = request.call(n);
      begin.arrive_and_wait();
      answers[n - 1] = answer_again(call, one, suffix(n));
    });
  }
  for (std::thread& thread : threads) thread.join();
  Response all = answers[0];
  for (Response& one : answers) {
    if (one.status != Response::Status::Done) return one;
    all.outputs.merge(one.outputs);
    if (all.overrun.empty()) {
      all.overrun = one.overrun;
      all.overrun_side = one.overrun_side;
    }
    if (all.changed_input.empty()) all.changed_input = one.changed_input;
  }
  return all;
}

Response answer(const Request& request) {
  const Call call = find_call(request.function);
  if (request.at_once) return answer_at_once(call, request);
  Response response;
  for (std::size_t n = 1; n <= request.n_calls(); ++n) {
    if (!answer_one(call, request.call(n), suffix(n), response)) break;
  }
  return response;
}

void answer_files(const char* request, const char* response) {
  answer(Request::read(request)).write(response);
}

// The limits of a process of --serve. It has no walls: who starts it so has compiled it from our
// own files.
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
  while (std::cin >> seconds >> request >> response) {
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
  if (argc == 2 && std::string(argv[1]) == "--serve") return stagecraft::stages::serve();
  if (argc != 3) {
    std::fputs("usage: worker REQUEST RESPONSE\n", stderr);
    return 2;
  }
  // What student code prints is to be read also where it crashes or hangs next.
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  stagecraft::stages::answer_files(argv[1], argv[2]);
  return 0;
}
