#include "course/worker/stopped_thread.h"

#include <cerrno>
#include <csignal>
#include <thread>

namespace stagecraft::stages {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSignal = SIGURG;  // at which debuggers do not stop
constexpr std::size_t kStops = 24;
constexpr std::size_t kTries = 1000;   // a short call is often over before the signal comes
constexpr microseconds kStep{10};      // by so much longer it runs each time, before it is stopped
constexpr milliseconds kPatience{20};  // it may hold a lock for which the other one waits
constexpr milliseconds kMostTime{4000};

enum class State { Runs, IsAsked, Stopped, WasElsewhere };
std::atomic<State> state{State::Runs};
thread_local volatile std::sig_atomic_t is_stoppable = 0;

// Until the state is another, or for so long.
void wait_while(State old, milliseconds most) {
  const auto end = steady_clock::now() + most;
  while (state == old && steady_clock::now() < end) std::this_thread::sleep_for(kStep);
}

void on_signal(int) {
  const int kept = errno;
  state = is_stoppable != 0 ? State::Stopped : State::WasElsewhere;
  wait_while(State::Stopped, kPatience);
  errno = kept;
}

}  // namespace

Stoppable::Stoppable(bool is) : before_(is_stoppable != 0) { is_stoppable = is; }
Stoppable::~Stoppable() { is_stoppable = before_; }

StoppedThread::StoppedThread(pthread_t thread, const std::atomic<bool>& ended)
    : thread_(thread), ended_(ended), deadline_(steady_clock::now() + kMostTime) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(kSignal, &action, nullptr);
}

StoppedThread::~StoppedThread() { state = State::Runs; }

bool StoppedThread::stop() {
  state = State::IsAsked;
  if (::pthread_kill(thread_, kSignal) != 0) return false;
  wait_while(State::IsAsked, kPatience);
  return state == State::Stopped;
}

bool StoppedThread::stop_again() {
  state = State::Runs;
  while (stops_ < kStops && ++tries_ < kTries && !ended_ && steady_clock::now() < deadline_) {
    std::this_thread::sleep_for(kStep * stops_);
    if (!stop()) continue;
    ++stops_;
    return true;
  }
  return false;
}

}  // namespace stagecraft::stages
