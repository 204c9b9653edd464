// Right: two halves, each in a thread.
#include "operators/silu.h"

#include <cmath>
#include <thread>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) { return x / (1.0f + std::exp(-x)); }

template <class Work>
void in_two_threads(std::size_t n, Work work) {
  std::thread first([&] {
    for (std::size_t i = 0; i < n / 2; ++i) work(i);
  });
  for (std::size_t i = n / 2; i < n; ++i) work(i);
  first.join();
}

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  in_two_threads(x.size(), [&](std::size_t i) { y[i] = silu_of(x[i]); });
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  in_two_threads(gate.size(), [&](std::size_t i) { y[i] = silu_of(gate[i]) * up[i]; });
}

}  // namespace stagecraft
