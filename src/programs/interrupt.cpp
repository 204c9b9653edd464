#include "programs/interrupt.h"

#include <signal.h>

#include <atomic>
#include <csignal>

#include <CLI/CLI.hpp>

#include "programs/console.h"

namespace stagecraft {
namespace {

constexpr int kOfSignals = 128;  // exit codes above it are those of signals

// A signal handler can only reach globals, and may run on any thread.
std::atomic<int> noted = 0;  // the signal
static_assert(std::atomic<int>::is_always_lock_free);
void (*call_then)() = nullptr;

// A signal that a guard may note, and what the program did at it before.
struct Handled {
  int signal;
  struct sigaction before = {};
  bool is_noted = false;
};
Handled all_handled[] = {{SIGINT}, {SIGTERM}, {SIGHUP}};

void restore() {
  for (const Handled& one : all_handled) {
    if (one.is_noted) ::sigaction(one.signal, &one.before, nullptr);
  }
}

void note(int signal) {
  noted = signal;
  restore();  // the next signal, of any kind, has its usual effect
  if (call_then != nullptr) call_then();
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals, void (*then)()) {
  call_then = then;
  for (Handled& one : all_handled) {
    if (signals == kCtrlC && one.signal != SIGINT) continue;
    one.is_noted =
        ::sigaction(one.signal, nullptr, &one.before) == 0 && one.before.sa_handler != SIG_IGN;
  }
  noted = 0;
  struct sigaction now = {};
  now.sa_handler = note;
  now.sa_flags = SA_RESTART;
  for (const Handled& one : all_handled) {
    if (one.is_noted) ::sigaction(one.signal, &now, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  restore();
  for (Handled& one : all_handled) one.is_noted = false;
}

bool InterruptGuard::interrupted() const { return noted != 0; }

void InterruptGuard::stop_if_interrupted() const {
  if (!interrupted()) return;
  print_note("[interrupted: nothing has been written]");
  end_if_interrupted();
}

void InterruptGuard::end_if_interrupted() const {
  if (interrupted()) throw CLI::RuntimeError(kOfSignals + noted);
}

int end_with(int code) {
  if (code > kOfSignals) {
    std::signal(code - kOfSignals, SIG_DFL);
    std::raise(code - kOfSignals);
  }
  return code;
}

}  // namespace stagecraft
