#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/processors.h"

namespace stagecraft {
namespace {

TEST(ThreadPool, GivesEachPartToAThreadOfItsOwnExactlyOnce) {
  for (const std::size_t n : {1u, 2u, 3u, 5u}) {
    ThreadPool pool(n);
    std::vector<std::thread::id> threads(n);
    std::vector<std::atomic<int>> calls(n);
    pool.run([&](std::size_t part) {
      threads[part] = std::this_thread::get_id();
      ++calls[part];
    });
    for (const auto& count : calls) EXPECT_EQ(count, 1);
    EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), n);
  }
}

TEST(ThreadPool, FinishesEveryRoundBeforeTheNext) {
  ThreadPool pool(4);
  std::atomic<int> done = 0;
  for (int round = 1; round <= 2000; ++round) {
    pool.run([&](std::size_t) { ++done; });
    ASSERT_EQ(done, 4 * round);
  }
}

TEST(ThreadPool, RethrowsWhatAnyThreadThrewWhenAllHaveFinished) {
  ThreadPool pool(3);
  for (std::size_t bad = 0; bad < 3; ++bad) {
    std::atomic<int> done = 0;
    auto work = [&](std::size_t part) {
      if (part == bad) throw Error("part {}", part);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++done;
    };
    try {
      pool.run(work);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()), fmt::format("part {}", bad));
    }
    EXPECT_EQ(done, 2);
  }
  EXPECT_THROW(pool.run([](std::size_t) { throw Error("all"); }), Error);
  std::atomic<int> calls = 0;
  pool.run([&](std::size_t) { ++calls; });  // nothing is left
  EXPECT_EQ(calls, 3);
}

TEST(ThreadPool, CountsHowOftenAPartSleptUntilTheOthersCame) {
  ThreadPool pool(2);
  pool.run([&](std::size_t part) {
    if (part == 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    pool.barrier();
  });
  EXPECT_GE(pool.sleeps(), 1u);
}

// One thread per processor: a caller that starts on a worker's processor moves to its own.
TEST(ThreadPool, LeavesTheProcessorOfAWorkerForARound) {
  const std::vector<int> processors = allowed_processors();
  if (processors.size() < 2) GTEST_SKIP() << "has one processor, or the system does not say";
  ThreadPool pool(processors.size());
  for (std::size_t worker = 1; worker < processors.size(); ++worker) {
    { const Pinned there(processors[worker]); }  // it stays there unless the system moves it
    std::vector<int> found(pool.size());
    pool.run([&](std::size_t thread) { found[thread] = current_processor(); });
    EXPECT_EQ(std::set(found.begin(), found.end()).size(), pool.size());
    EXPECT_EQ(allowed_processors(), processors);
  }
}

TEST(ThreadPool, RefusesToHaveNoThreads) { EXPECT_THROW(ThreadPool(0), Error); }

}  // namespace
}  // namespace stagecraft
