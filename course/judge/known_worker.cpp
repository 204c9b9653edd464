#include "course/judge/known_worker.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/error.h"

namespace stagecraft::stages {

namespace {

// A pipe that is closed in programs that are started later.
class Pipe {
 public:
  explicit Pipe(const std::string& whose) {
    if (::pipe(ends_) != 0) throw Error("{}: {}", whose, std::strerror(errno));
    for (const int end : ends_) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) ::close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  int take(int which) { return std::exchange(ends_[which], -1); }

 private:
  int ends_[2] = {-1, -1};
};

}  // namespace

WrittenRequest::WrittenRequest(const Request& request)
    : most_bytes_(stages::most_bytes(request, kMostAnswerBytes)) {
  request.write(question());
}

KnownWorker::KnownWorker(const std::filesystem::path& program) : program_(program) {
  const std::string path = program.string();
  Pipe orders(path);
  Pipe statuses(path);
  ::signal(SIGPIPE, SIG_IGN);  // so that ask() can throw Error if the worker has ended
  process_ = ::fork();
  if (process_ == 0) {
    ::dup2(orders.reading(), STDIN_FILENO);
    ::dup2(statuses.writing(), STDOUT_FILENO);
    ::execl(path.c_str(), path.c_str(), "--serve", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  orders_ = orders.take(1);
  statuses_ = statuses.take(0);
}

KnownWorker::~KnownWorker() {
  ::close(orders_);  // the worker ends when its input ends
  ::close(statuses_);
  if (process_ > 0) ::waitpid(process_, nullptr, 0);
}

Outcome KnownWorker::ask(const WrittenRequest& request) {
  std::ofstream(request.answer());  // empty the file: it may hold the answer of another worker
  const unsigned seconds = seconds_of_a_worker();
  std::ostringstream words;
  words << seconds << ' ' << request.question() << ' ' << request.answer() << '\n';
  const std::string order = std::move(words).str();
  int status = 0;
  const bool sent =
      ::write(orders_, order.data(), order.size()) == static_cast<ssize_t>(order.size());
  if (!sent || ::read(statuses_, &status, sizeof status) != sizeof status) {
    throw Error("{}: expected an answer, but the program ended", program_.string());
  }
  const bool late = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
  return outcome_of(late ? std::nullopt : std::optional(status), request.answer(), seconds,
                    request.most_bytes());
}

}  // namespace stagecraft::stages
