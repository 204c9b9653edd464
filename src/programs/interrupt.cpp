#include "programs/interrupt.h"

#include <signal.h>

#include <csignal>

#include <CLI/CLI.hpp>

#include "programs/console.h"

namespace stagecraft {
namespace {

// A signal handler can only reach globals.
volatile std::sig_atomic_t noted = 0;  // the signal
void (*call_then)() = nullptr;

void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
  if (call_then != nullptr) call_then();
}

bool is_ignored(int signal) {
  struct sigaction now = {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

void handle(InterruptGuard::Signals signals, void (*handler)(int)) {
  std::signal(SIGINT, handler);
  if (signals != InterruptGuard::kEndToo) return;
  std::signal(SIGTERM, handler);
  if (!is_ignored(SIGHUP)) std::signal(SIGHUP, handler);  // nohup ignores it
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals, void (*then)()) : signals_(signals) {
  call_then = then;
  reset();
}

InterruptGuard::~InterruptGuard() { handle(signals_, SIG_DFL); }

bool InterruptGuard::interrupted() const { return noted != 0; }

void InterruptGuard::stop_if_interrupted() const {
  if (!interrupted()) return;
  print_note("[interrupted: nothing has been written]");
  end_if_interrupted();
}

void InterruptGuard::end_if_interrupted() const {
  if (interrupted()) throw CLI::RuntimeError(128 + noted);
}

void InterruptGuard::reset() {
  noted = 0;
  handle(signals_, note);
}

}  // namespace stagecraft
