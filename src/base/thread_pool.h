#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <type_traits>
#include <vector>

namespace stagecraft {

// A fixed crew of threads that a session keeps. `run` gives each one part of a piece of work and
// returns when all parts are done; the calling thread does part 0 itself. Nothing is allocated by
// `run`. One caller at a time.
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

 private:
  using Call = void (*)(void* context, std::size_t part);
  void start(Call call, void* context);
  void finish();
  void worker(std::size_t part);
  void stop();

  std::vector<std::thread> workers_;
  Call call_ = nullptr;
  void* context_ = nullptr;
  std::atomic<std::size_t> round_{0};    // counts pieces of work; workers wait for it to change
  std::atomic<std::size_t> working_{0};  // workers that have not finished this round
  std::atomic<bool> quit_{false};
};

}  // namespace stagecraft
