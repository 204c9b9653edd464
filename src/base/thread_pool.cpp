#include "base/thread_pool.h"

#include <system_error>

#include "base/error.h"

namespace stagecraft {

ThreadPool::ThreadPool(std::size_t n_threads) {
  if (n_threads == 0) throw Error("threads: expected at least 1, found 0");
  workers_.reserve(n_threads - 1);
  try {
    for (std::size_t part = 1; part < n_threads; ++part) {
      workers_.emplace_back([this, part] { worker(part); });
    }
  } catch (const std::system_error&) {
    const std::size_t started = size();
    stop();
    throw Error("threads: expected at most {}, as many as this system starts, found {}", started,
                n_threads);
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
  call_ = call;
  context_ = context;
  working_ = workers_.size();
  ++round_;  // publishes the three above
  round_.notify_all();
}

void ThreadPool::finish() {
  for (std::size_t left = working_; left != 0; left = working_) working_.wait(left);
}

void ThreadPool::worker(std::size_t part) {
  for (std::size_t seen = 0;;) {
    round_.wait(seen);
    ++seen;  // the caller waits for every worker, so a round is never missed
    if (quit_) return;
    call_(context_, part);
    if (--working_ == 0) working_.notify_one();
  }
}

}  // namespace stagecraft
