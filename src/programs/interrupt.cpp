#include "programs/interrupt.h"

#include <csignal>

namespace stagecraft {
namespace {

volatile std::sig_atomic_t noted = 0;  // the signal; a signal handler can only reach globals

void note(int signal) {
  noted = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) : signals_(signals) { reset(); }

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  if (signals_ == kSigtermToo) std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted() const { return noted != 0; }

int InterruptGuard::exit_code() const { return 128 + noted; }

void InterruptGuard::reset() {
  noted = 0;
  std::signal(SIGINT, note);
  if (signals_ == kSigtermToo) std::signal(SIGTERM, note);
}

}  // namespace stagecraft
