#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backends/engine.h"

namespace stagecraft {

struct BenchmarkSizes {
  std::size_t prompt = 512;    // tokens that are read at once; 0: not measured
  std::size_t generate = 128;  // tokens that are made one after the other; 0: not measured
  std::size_t depth = 0;       // tokens that stand before both
  std::size_t batch = 1;       // sequences side by side
  std::size_t repetitions = 5;
};

// One entry per repetition. One more run before them warms the caches and is not counted.
struct BenchmarkResult {
  std::vector<double> prompt_seconds;    // of all sequences
  std::vector<double> generate_seconds;  // of all sequences
  std::uint64_t logits_hash =
      0;  // FNV-1a of the last logits' bits: the same for any threads, batch
};

// Times the model on fixed ids: no tokenizer, no sampling. `go_on` is called before each pass;
// false stops, and the result is empty. Throws Error if the model computes logits that are NaN or
// +infinity.
BenchmarkResult benchmark(Engine& engine, const BenchmarkSizes& sizes,
                          const std::function<bool()>& go_on = {});

}  // namespace stagecraft
