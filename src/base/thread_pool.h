#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace stagecraft {

// A fixed crew of threads that a session keeps. `run` gives each one part of a piece of work and
// returns when all parts are done; the calling thread does part 0 itself. Nothing is allocated by
// `run`. One caller at a time.
//
// Whoever waits looks again and again for a tenth of a millisecond before it goes to sleep, because
// being woken takes longer than most pieces of work; but not where there are more threads than
// processors, which would only keep the others from working. Where a crew has all the processors
// that the process may use, its workers are tied to one each.
class ThreadPool {
 public:
  // At least 1, the caller counted. Throws Error if the system does not start that many.
  explicit ThreadPool(std::size_t n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t size() const { return workers_.size() + 1; }

  // Calls work(part) once for each part in [0, size()), each on a thread of its own. `work` must
  // not throw.
  template <class Work>
  void run(Work&& work) {
    if (workers_.empty()) {
      work(std::size_t{0});
      return;
    }
    using Callable = std::remove_reference_t<Work>;
    start([](void* context, std::size_t part) { (*static_cast<Callable*>(context))(part); }, &work);
    work(std::size_t{0});
    finish();
  }

  // Within `run`, to be called by every part: returns when all of them have. What each wrote before
  // is there for all to read.
  void barrier();

  // How often a part has waited for the others so long that it went to sleep: they have much more
  // to do, or no processor to do it on.
  std::uint32_t sleeps() const { return sleeps_; }

 private:
  using Call = void (*)(void* context, std::size_t part);
  using Count = std::atomic<std::uint32_t>;
  void start(Call call, void* context);
  void finish();
  void worker(std::size_t part);
  void stop();
  bool soon_changes(const Count& count, std::uint32_t value) const;
  void wait_while(const Count& count, std::uint32_t value);

  std::vector<std::thread> workers_;
  bool may_spin_ = false;
  Call call_ = nullptr;
  void* context_ = nullptr;
  bool quit_ = false;
  // Each on a cache line of its own: threads that wait for one do not disturb the others.
  alignas(64) Count round_{0};     // counts pieces of work; workers wait for it to change
  alignas(64) Count working_{0};   // workers that have not finished this round
  alignas(64) Count arrived_{0};   // parts that have come to the barrier
  alignas(64) Count barriers_{0};  // counts barriers that all have come to
  alignas(64) Count sleeps_{0};
};

}  // namespace stagecraft
