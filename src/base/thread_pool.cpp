#include "base/thread_pool.h"

#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/processors.h"

namespace stagecraft {
namespace {

// Tells the processor that this is a waiting loop.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

constexpr int kLooks = 4'000;  // about a tenth of a millisecond on the machines that we measured

}  // namespace

struct ThreadPool::CallersPlace {
  explicit CallersPlace(int its_own) : processor(its_own) {}

  const int processor;
  std::thread::id caller;
  std::optional<Pinned> pinned;  // until the round ends
};

ThreadPool::ThreadPool(std::size_t n_threads) {
  if (n_threads == 0) throw Error("threads: expected at least 1, found 0");
  if (n_threads == 1) return;
  const std::vector<int> processors = allowed_processors();
  may_spin_ = n_threads <= usable_cores();
  const bool pin = n_threads == processors.size();
  if (pin) callers_place_ = std::make_unique<CallersPlace>(processors[0]);
  thrown_.resize(n_threads);
  workers_.reserve(n_threads - 1);
  try {
    for (std::size_t thread = 1; thread < n_threads; ++thread) {
      const int processor = pin ? processors[thread] : -1;
      workers_.emplace_back([this, thread, processor] {
        std::optional<Pinned> pinned;
        if (processor >= 0) pinned.emplace(processor);
        worker(thread);
      });
    }
  } catch (const std::system_error&) {
    const std::size_t started = size();
    stop();
    throw Error("threads: expected at most {} (this system starts no more), found {}", started,
                n_threads);
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  quit_ = true;
  ++round_;
  round_.notify_all();
  for (std::thread& thread : workers_) thread.join();
  workers_.clear();
}

void ThreadPool::start(Call call, void* context) {
  if (callers_place_) callers_place_->caller = std::this_thread::get_id();
  step_aside();
  call_ = call;
  context_ = context;
  working_ = static_cast<std::uint32_t>(workers_.size());
  ++round_;  // publishes the three above
  round_.notify_all();
}

void ThreadPool::finish() {
  while (const std::uint32_t left = working_) wait_while(working_, left);
  if (callers_place_) callers_place_->pinned.reset();
  std::exception_ptr first;
  for (std::exception_ptr& thrown : thrown_) {
    if (!first) first = thrown;
    thrown = nullptr;
  }
  if (first) std::rethrow_exception(first);
}

void ThreadPool::step_aside() {
  CallersPlace* place = callers_place_.get();
  if (!place || std::this_thread::get_id() != place->caller || place->pinned) return;
  if (current_processor() != place->processor) place->pinned.emplace(place->processor);
}

void ThreadPool::worker(std::size_t thread) {
  for (std::uint32_t seen = 0;;) {
    if (!soon_changes(round_, seen)) round_.wait(seen);
    ++seen;  // the caller waits for every worker, so a round is never missed
    if (quit_) return;
    try {
      call_(context_, thread);
    } catch (...) {
      thrown_[thread] = std::current_exception();
    }
    if (--working_ == 0) working_.notify_one();
  }
}

void ThreadPool::barrier() {
  if (workers_.empty()) return;
  const std::uint32_t before = barriers_;
  if (++arrived_ != size()) {
    wait_while(barriers_, before);
    return;
  }
  arrived_ = 0;  // no thread comes here again before the count below has changed
  ++barriers_;
  barriers_.notify_all();
}

void ThreadPool::wait_for(const Count& count, std::uint32_t value) {
  while (true) {
    const std::uint32_t found = count.load(std::memory_order_acquire);
    if (found == value) return;
    wait_while(count, found);
  }
}

bool ThreadPool::soon_changes(const Count& count, std::uint32_t value) const {
  for (int look = 0; may_spin_ && look < kLooks; ++look) {
    if (count.load(std::memory_order_acquire) != value) return true;
    pause();
  }
  return false;
}

void ThreadPool::wait_while(const Count& count, std::uint32_t value) {
  if (soon_changes(count, value)) return;
  ++sleeps_;
  count.wait(value);
  step_aside();
}

}  // namespace stagecraft
