#include "inspection/benchmark.h"

#include <gtest/gtest.h>

#include "base/usable_memory.h"
#include "tests/support/engines.h"
#include "tests/support/error_of.h"

namespace stagecraft {
namespace {

TEST(Benchmark, SaysBeforeItAllocatesThatTheSequencesDoNotFit) {
  if (usable_memory() == 0.0) GTEST_SKIP() << "the system does not say how much memory there is";
  Engine engine = textbook_engine(TEST_DATA "/models/llama-gqa2");
  BenchmarkSizes sizes;
  sizes.depth = 1'000'000'000;
  sizes.batch = 512;
  const std::string error = error_of([&] { benchmark(engine, sizes); });
  EXPECT_TRUE(error.starts_with("context: expected at most ")) << error;
  EXPECT_NE(error.find(" tokens for each of 512 texts (they fit into "), std::string::npos)
      << error;
  EXPECT_TRUE(error.ends_with(" GB of memory), found 1000000512")) << error;
}

}  // namespace
}  // namespace stagecraft
