#include "programs/interrupt.h"

#include <csignal>

#include <CLI/CLI.hpp>

#include "programs/console.h"

namespace stagecraft {
namespace {

volatile std::sig_atomic_t noted = 0;  // the signal; a signal handler can only reach globals

constexpr int kEnds[] = {SIGTERM, SIGHUP};

void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) : signals_(signals) { reset(); }

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  if (signals_ != kEndToo) return;
  for (const int signal : kEnds) std::signal(signal, SIG_DFL);
}

bool InterruptGuard::interrupted() const { return noted != 0; }

void InterruptGuard::stop_if_interrupted() const {
  if (!interrupted()) return;
  print_note("[interrupted: nothing has been written]");
  throw CLI::RuntimeError(exit_code());
}

int InterruptGuard::exit_code() const { return 128 + noted; }

void InterruptGuard::reset() {
  noted = 0;
  std::signal(SIGINT, note);
  if (signals_ != kEndToo) return;
  for (const int signal : kEnds) std::signal(signal, note);
}

}  // namespace stagecraft
