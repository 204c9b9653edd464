// Shared by the host code of these test programs.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "cuda_emulator.h"

// Device memory that is freed at the end of a scope.
template <class T>
struct Buffer {
  explicit Buffer(int count) : count(count) { cudaMalloc(&data, count * sizeof(T)); }
  explicit Buffer(const std::vector<T>& values) : Buffer(static_cast<int>(values.size())) {
    cudaMemcpy(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice);
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { cudaFree(data); }

  std::vector<T> host() const {
    std::vector<T> values(count);
    cudaMemcpy(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost);
    return values;
  }

  T* data = nullptr;
  int count;
};

inline std::vector<float> numbers(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i)
    values[i] = static_cast<float>((i * i * 37 + i * 11 + 5) % 61 - 23) / 32;
  return values;
}

inline bool near(float a, double b) { return std::fabs(a - b) <= 1e-4 * (1 + std::fabs(b)); }

// Whether found [m, n] = a [m, k] * b^T, with b [n, k].
inline bool is_product(const std::vector<float>& found, const std::vector<float>& a,
                       const std::vector<float>& b, int m, int n, int k) {
  bool right = true;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += a[i * k + l] * b[j * k + l];
      right &= near(found[i * n + j], sum);
    }
  return right;
}
