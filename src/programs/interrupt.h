#pragma once

namespace stagecraft {

// While an InterruptGuard exists, the first Ctrl-C is only noted, so that a command can end its
// line and report how far it came. The second Ctrl-C ends the program as usual. At most one guard
// may exist.
class InterruptGuard {
 public:
  // kEndToo: also notes SIGTERM (from `kill`) and, unless nohup started the program, SIGHUP (the
  // terminal was closed).
  enum Signals { kCtrlC, kEndToo };

  // `then` is called inside the signal handler.
  explicit InterruptGuard(Signals signals = kCtrlC, void (*then)() = nullptr);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  // Throws CLI::RuntimeError with the exit code that shells expect after this signal (130 after
  // Ctrl-C), after a note that nothing has been written.
  void stop_if_interrupted() const;
  // The same without the note, for a command that has reported how far it came.
  void end_if_interrupted() const;
  void reset();  // forgets the noted signal

 private:
  Signals signals_;
};

}  // namespace stagecraft
