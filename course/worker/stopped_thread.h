#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstddef>

namespace stagecraft::stages {

// Two threads that call one function at the same time overlap only by chance: on a busy machine
// they take turns. Here they always overlap: one is stopped at an arbitrary place in its call, and
// continues after the other has made a whole call.

// While this object lives, its thread can be stopped (true) or not (false): it can in a student's
// code. Our code that makes the arguments needs no such test.
class Stoppable {
 public:
  explicit Stoppable(bool is);
  ~Stoppable();
  Stoppable(const Stoppable&) = delete;
  Stoppable& operator=(const Stoppable&) = delete;

 private:
  bool before_;
};

// Stops a thread that repeats a call, each time at another place.
class StoppedThread {
 public:
  // calls: the number of calls the thread has made; ended: it makes no more.
  StoppedThread(pthread_t thread, const std::atomic<std::size_t>& calls,
                const std::atomic<bool>& ended);
  ~StoppedThread();
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  // Lets the thread continue and stops it again. False after enough stops, or if it cannot be
  // stopped.
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
