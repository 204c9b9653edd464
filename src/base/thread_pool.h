#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace stagecraft {

// A fixed number of threads. `run` calls a function once per thread and returns when all calls have
// returned; the calling thread makes call 0 itself. `run` allocates nothing. One caller at a time.
//
// A waiting thread spins for a tenth of a millisecond before it sleeps, because waking a thread
// takes longer than most pieces of work. It does not spin if there are more threads than
// processors: that would only slow the others down. If the pool has as many threads as the process
// has processors, each worker is pinned to one. If the caller then runs on a worker's processor, it
// is pinned to its own for the rest of the round: otherwise the two threads, which wait for each
// other, could share that processor all the time.
class ThreadPool {
 public:
  // n_threads: at least 1, the caller included. Throws Error if the system does not start that
  // many.
  explicit ThreadPool(std::size_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  // Calls work(thread) once for each thread in [0, size()), all at the same time. If calls throw,
  // `run` rethrows one of the exceptions when all calls have returned. A call must not throw while
  // others wait for it (barrier, wait_for).
  template <class Work>
  void run(Work&& work) {
    if (workers_.empty()) {
      work(std::size_t{0});
      return;
    }
    using Callable = std::remove_reference_t<Work>;
    start([](void* context, std::size_t thread) { (*static_cast<Callable*>(context))(thread); },
          &work);
    try {
      work(std::size_t{0});
    } catch (...) {
      thrown_[0] = std::current_exception();
    }
    finish();
  }

  // Within `run`, every thread must call it. Returns when all threads have called it. Afterwards
  // each can read what the others wrote before.
  void barrier();

  using Count = std::atomic<std::uint32_t>;
  // Within `run`: returns when `count` has this value. Another thread sets it with `set`.
  void wait_for(const Count& count, std::uint32_t value);
  static void set(Count& count, std::uint32_t value) {
    count.store(value, std::memory_order_release);
    count.notify_all();
  }

  // How often a thread waited so long that it went to sleep, because another thread had much more
  // to do, or no processor to run on.
  std::uint32_t sleeps() const { return sleeps_; }

 private:
  using Call = void (*)(void* context, std::size_t thread);
  void start(Call call, void* context);
  void finish();
  void worker(std::size_t thread);
  void stop();
  void step_aside();
  bool soon_changes(const Count& count, std::uint32_t value) const;
  void wait_while(const Count& count, std::uint32_t value);

  std::vector<std::thread> workers_;
  struct CallersPlace;
  std::unique_ptr<CallersPlace> callers_place_;  // if each thread has a processor of its own
  bool may_spin_ = false;
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool quit_ = false;
  std::vector<std::exception_ptr> thrown_;  // in this round, by thread
  // Each on its own cache line, so that waiting for one does not slow down the others.
  alignas(64) Count round_{0};     // counts pieces of work; workers wait for it to change
  alignas(64) Count working_{0};   // workers that have not finished this round
  alignas(64) Count arrived_{0};   // threads that have reached the barrier
  alignas(64) Count barriers_{0};  // counts barriers that all threads have passed
  alignas(64) Count sleeps_{0};
};

}  // namespace stagecraft
