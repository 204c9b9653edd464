// The peak of a core: independent multiply-adds, compiled with the flags of the stage.
#include "course/worker/calls.h"

namespace stagecraft::stages {
namespace {

using Lanes [[gnu::vector_size(32)]] = float;

// "steps" times 12 vectors of 8 numbers: 192 operations per step.
void call_fma(Arguments& args) {
  constexpr std::size_t kChains = 12;
  const std::size_t steps = args.size("steps");
  const Lanes scale = Lanes{} + 0.999f;
  const Lanes shift = Lanes{} + 0.001f;
  Lanes sums[kChains];
  for (std::size_t i = 0; i < kChains; ++i) sums[i] = Lanes{} + static_cast<float>(i);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = sums[i] * scale + shift;
  }
  std::vector<float> ends;
  for (std::size_t i = 0; i < kChains; ++i) ends.push_back(sums[i][0]);
  args.record("sums", ends);
}

const Callable kCeilingCalls{{"fma", call_fma}};

}  // namespace

}  // namespace stagecraft::stages
