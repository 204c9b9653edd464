#pragma once

namespace stagecraft {

// While one of these lives, the first Ctrl-C is only noted, so that a command can end its line and
// say how far it came; the second one ends the program as usual. One at a time.
class InterruptGuard {
 public:
  enum Signals { kCtrlC, kSigtermToo };  // SIGTERM, from `kill`, is then noted in the same way

  explicit InterruptGuard(Signals signals = kCtrlC);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
  void reset();  // forget the one that was noted

  static constexpr int kExitCode = 130;  // what a shell expects of a command ended by Ctrl-C
  int exit_code() const;                 // the same for the signal that was noted

 private:
  Signals signals_;
};

}  // namespace stagecraft
