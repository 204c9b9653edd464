#include "programs/interrupt.h"

#include <csignal>

namespace stagecraft {
namespace {

volatile std::sig_atomic_t noted = 0;  // a signal handler can reach nothing else

void note(int) {
  noted = 1;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() { reset(); }

InterruptGuard::~InterruptGuard() { std::signal(SIGINT, SIG_DFL); }

bool InterruptGuard::interrupted() const { return noted != 0; }

void InterruptGuard::reset() {
  noted = 0;
  std::signal(SIGINT, note);
}

}  // namespace stagecraft
