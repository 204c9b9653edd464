#include "course/worker/stopped_thread.h"

#include <cerrno>
#include <csignal>
#include <thread>

namespace stagecraft::stages {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kSignal = SIGURG;  // debuggers do not stop at it
// Not every stop finds a shared buffer: the thread must still need the data that the other call
// overwrites.
constexpr std::size_t kStops = 24;       // at least this many that lasted a whole call of the other
constexpr std::size_t kMostStops = 96;   // if time is left
constexpr milliseconds kMoreTime{1000};  // for stops beyond kStops
constexpr std::size_t kLeft = 24;        // stops that ended too soon: machine busy, or lock held
constexpr std::size_t kTries = 1000;     // short calls often end before the signal arrives
constexpr microseconds kStep{10};        // added to the running time before each stop
constexpr milliseconds kPatience{20};    // it may hold a lock that the other one waits for
constexpr milliseconds kMostTime{4000};

enum class State { Runs, IsAsked, Stopped, WasElsewhere, Left };
std::atomic<State> state{State::Runs};
thread_local volatile std::sig_atomic_t is_stoppable = 0;

// Waits until the value changes, at most for kPatience.
template <class T>
void wait_while(const std::atomic<T>& value, T old) {
  const auto end = steady_clock::now() + kPatience;
  while (value == old && steady_clock::now() < end) std::this_thread::sleep_for(kStep);
}

void on_signal(int) {
  const int kept = errno;
  state = is_stoppable != 0 ? State::Stopped : State::WasElsewhere;
  wait_while(state, State::Stopped);
  State still = State::Stopped;
  state.compare_exchange_strong(still, State::Left);
  errno = kept;
}

}  // namespace

Stoppable::Stoppable(bool is) : before_(is_stoppable != 0) { is_stoppable = is; }
Stoppable::~Stoppable() { is_stoppable = before_; }

StoppedThread::StoppedThread(pthread_t thread, const std::atomic<std::size_t>& calls,
                             const std::atomic<bool>& ended)
    : thread_(thread), calls_(calls), ended_(ended), begin_(steady_clock::now()) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(kSignal, &action, nullptr);
}

StoppedThread::~StoppedThread() { state = State::Runs; }

bool StoppedThread::stop() {
  state = State::IsAsked;
  if (::pthread_kill(thread_, kSignal) != 0) return false;
  wait_while(state, State::IsAsked);
  return state == State::Stopped;
}

bool StoppedThread::is_enough() const {
  const auto taken = steady_clock::now() - begin_;
  return stops_ >= (taken < kMoreTime ? kMostStops : kStops) || left_ >= kLeft ||
         tries_ >= kTries || taken >= kMostTime;
}

bool StoppedThread::stop_again() {
  const State before = state.exchange(State::Runs);
  stops_ += before == State::Stopped ? 1 : 0;
  left_ += before == State::Left ? 1 : 0;
  while (!ended_ && !is_enough()) {
    wait_while(calls_, calls_.load());  // on a busy machine, time may pass without progress
    std::this_thread::sleep_for(kStep * (tries_++ % kStops));
    if (stop()) return true;
  }
  return false;
}

}  // namespace stagecraft::stages
