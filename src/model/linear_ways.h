#pragma once

#include <algorithm>
#include <vector>

#include "model/linear.h"

namespace stagecraft {

// Another implementation of linear(): with packed or quantised weights, or on a GPU.
struct LinearWay {
  int rank;  // linear() tries the ways from the lowest rank to the highest
  // Computes y as linear() does and returns true, or returns false and does nothing if it does not
  // support this weight. This decision must depend on the weight alone: then a text has the same
  // bits whether it is computed in one pass or in several.
  bool (*compute)(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                  ThreadPool& threads);
};

// The implementations that a program has linked; each is added before main() begins. Stagecraft's
// own program has none.
inline std::vector<LinearWay> linear_ways;

inline bool add_linear_way(const LinearWay& way) {
  linear_ways.push_back(way);
  std::ranges::sort(linear_ways, {}, &LinearWay::rank);
  return true;
}

// Below this number of multiplications of the textbook's matmul_transb, waking a thread takes
// longer than the work.
constexpr std::size_t kMinParallelMultiplications = 100'000;

// Calls part(0) to part(threads.size() - 1): in parallel, or one after the other if that is faster.
// times_as_fast: the speed of the kernel in units of the textbook kernel's speed.
template <class Part>
void in_parts(ThreadPool& threads, std::size_t n_multiplications, std::size_t times_as_fast,
              Part&& part) {
  if (n_multiplications >= times_as_fast * kMinParallelMultiplications) return threads.run(part);
  for (std::size_t n = 0; n < threads.size(); ++n) part(n);
}

}  // namespace stagecraft
