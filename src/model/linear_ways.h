#pragma once

#include <algorithm>
#include <vector>

#include "model/linear.h"

namespace stagecraft {

// Another way to compute a linear map: with packed or quantised weights, or on a GPU.
struct LinearWay {
  int rank;  // linear() tries the ways from the lowest rank to the highest
  // Computes what linear() promises; or does nothing and returns false, if the way does not take
  // this weight. Whether it does must depend on the weight alone, so that a text has the same bits
  // in one pass and in many.
  bool (*compute)(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
                  ThreadPool& threads);
};

// A program that links other ways adds them before main() begins. Ours has none.
inline std::vector<LinearWay> linear_ways;

inline bool add_linear_way(const LinearWay& way) {
  linear_ways.push_back(way);
  std::ranges::sort(linear_ways, {}, &LinearWay::rank);
  return true;
}

// Below this many multiplications of the textbook's matmul_transb, waking a thread takes longer
// than the work.
constexpr std::size_t kWorthSplitting = 100'000;

// Calls part(0) to part(threads.size() - 1): at the same time, or one after the other where that is
// faster. times_as_fast: how the kernel compares with the textbook's.
template <class Part>
void in_parts(ThreadPool& threads, std::size_t n_multiplications, std::size_t times_as_fast,
              Part&& part) {
  if (n_multiplications >= times_as_fast * kWorthSplitting) return threads.run(part);
  for (std::size_t n = 0; n < threads.size(); ++n) part(n);
}

}  // namespace stagecraft
