#include "operators/kernels/ceilings.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/large_memory.h"
#include "base/stopwatch.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {
namespace {

constexpr int kTries = 7;  // the fastest counts: disturbances only make a run slower

template <class Work>
double best_seconds(ThreadPool& threads, Work work) {
  double best = 1e30;
  for (int i = 0; i < kTries; ++i) {
    const Stopwatch watch;
    threads.run(work);
    best = std::min(best, watch.seconds());
  }
  return best;
}

double measure_operations(double (*peak)(std::size_t, float*), ThreadPool& threads) {
  constexpr std::size_t kRounds = 500'000;
  std::vector<float> sinks(threads.size() * 16);
  std::vector<double> done(threads.size());
  const double seconds = best_seconds(threads, [&](std::size_t part) {
    sinks[part * 16] = 1.0f;
    done[part] = peak(kRounds, &sinks[part * 16]);
  });
  double all = 0.0;
  for (const double one : done) all += one;
  return all / seconds;
}

double measure_read(const Kernels& kernels, ThreadPool& threads) {
  constexpr std::size_t kFloats = std::size_t{64} << 20;  // larger than the caches of most machines
  const std::size_t part_floats = kFloats / threads.size() / 128 * 128;
  LargeMemory memory(kFloats * sizeof(float));
  const auto* floats = reinterpret_cast<const float*>(memory.data());
  std::memset(memory.data(), 0, memory.size());  // pages never written are all the same page
  std::vector<float> sums(threads.size() * 16);
  const double seconds = best_seconds(threads, [&](std::size_t part) {
    sums[part * 16] +=
        kernels.sum(floats + part * part_floats, part_floats, prefetch_for(memory.size()));
  });
  return static_cast<double>(part_floats * threads.size() * sizeof(float)) / seconds;
}

}  // namespace

Ceilings measure_ceilings(const Kernels& kernels, ThreadPool& threads) {
  Ceilings result{};
  for (std::size_t type = 0; type < kActivationTypes; ++type) {
    result.operations[type] = measure_operations(kernels.peak[type], threads);
  }
  result.read = measure_read(kernels, threads);
  return result;
}

}  // namespace stagecraft
