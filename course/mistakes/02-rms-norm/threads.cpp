// Right: four threads, each with every fourth row.
#include "operators/rms_norm.h"

#include <cmath>
#include <thread>
#include <vector>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 4; ++first) {
    threads.emplace_back([=] {
      for (std::size_t t = first; t < x.rows(); t += 4) {
        float sum = 0.0f;
        for (const float value : x.row(t)) sum += value * value;
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(x.cols()) + eps);
        for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = weight[i] * x(t, i) * scale;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stagecraft
