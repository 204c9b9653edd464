#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "backends/engine.h"

namespace stagecraft {

struct BenchmarkSizes {
  std::size_t prompt = 512;    // tokens of the prompt; 0: do not measure prompts
  std::size_t generate = 128;  // tokens generated one after the other; 0: do not measure generation
  std::size_t depth = 0;       // tokens in the cache before prompt or generation
  std::size_t batch = 1;       // sequences computed together
  std::size_t repetitions = 5;
};

// One entry per repetition. One run before them warms the caches and is not counted.
struct BenchmarkResult {
  std::vector<double> prompt_seconds;    // of all sequences
  std::vector<double> generate_seconds;  // of all sequences
  std::uint64_t logits_hash = 0;  // FNV-1a of the last logits; threads and batch do not change it
};

// Measures the speed of the model on fixed ids, without tokenizer and sampling. `go_on` is called
// before each pass; if it returns false, the benchmark stops and the result is empty. Throws Error
// if the sequences do not fit into memory, or if the model computes a logit that is NaN or
// +infinity.
BenchmarkResult benchmark(Engine& engine, const BenchmarkSizes& sizes,
                          const std::function<bool()>& go_on = {});

}  // namespace stagecraft
