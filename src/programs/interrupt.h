#pragma once

namespace stagecraft {

// While an InterruptGuard exists, the first Ctrl-C is only noted, so that a command can end its
// line and report how far it came. The second signal ends the program as usual. A signal that was
// ignored before stays ignored: nohup ignores SIGHUP, a shell ignores SIGINT in background jobs of
// a script. At most one guard may exist.
class InterruptGuard {
 public:
  // kEndToo: also notes SIGTERM (from `kill`) and SIGHUP (the terminal was closed).
  enum Signals { kCtrlC, kEndToo };

  // `then` is called inside the signal handler.
  explicit InterruptGuard(Signals signals = kCtrlC, void (*then)() = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  // Throws CLI::RuntimeError with the exit code that shells show after this signal (130 after
  // Ctrl-C), after a note that nothing has been written. The program then ends by the signal
  // itself (end_with).
  void stop_if_interrupted() const;
  // The same without the note, for a command that has reported how far it came.
  void end_if_interrupted() const;
};

// Returns the exit code. If it is that of a signal, ends the program by this signal instead: a loop
// in a shell ends, too, and does not go on with its next command.
int end_with(int code);

}  // namespace stagecraft
