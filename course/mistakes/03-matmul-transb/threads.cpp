// Right: four threads, each with every fourth row.
#include "operators/matmul_transb.h"

#include <thread>
#include <vector>

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  std::vector<std::thread> threads;
  for (std::size_t first = 0; first < 4; ++first) {
    threads.emplace_back([=] {
      for (std::size_t m = first; m < a.rows(); m += 4) {
        for (std::size_t n = 0; n < b.rows(); ++n) {
          float sum = 0.0f;
          for (std::size_t k = 0; k < a.cols(); ++k) sum += a(m, k) * b(n, k);
          c(m, n) = beta == 0.0f ? alpha * sum : alpha * sum + beta * c(m, n);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace stagecraft
