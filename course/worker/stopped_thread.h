#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>

namespace stagecraft::stages {

// Two threads that call one function at the same time meet by chance: on a busy machine they take
// turns. Here they meet always: one is stopped wherever in its call it is, and goes on when the
// other has made a call of its own from beginning to end.

// While this lives, a thread can be stopped, or cannot: in a student's code it can, in ours that
// makes the arguments there is nothing to find.
class Stoppable {
 public:
  explicit Stoppable(bool is);
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  bool before_;
};

// Stops a thread that calls again and again, each time somewhere else.
class StoppedThread {
 public:
  // calls: how many the thread has made; ended: that it makes no more.
  StoppedThread(pthread_t thread, const std::atomic<std::size_t>& calls,
                const std::atomic<bool>& ended);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  // Lets it go on and stops it anew. False if that was often enough, or cannot be done.
  bool stop_again();

 private:
  bool stop();
  bool is_enough() const;

  pthread_t thread_;
  const std::atomic<std::size_t>& calls_;
  const std::atomic<bool>& ended_;
  std::chrono::steady_clock::time_point begin_;
  std::size_t stops_ = 0;
  std::size_t left_ = 0;
  std::size_t tries_ = 0;
};

}  // namespace stagecraft::stages
