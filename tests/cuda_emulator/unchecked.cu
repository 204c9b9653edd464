// Functions of CUDA that read or write memory for their caller: atomics on shared and global memory, and asynchronous
// copies. In a program that is compiled without checks, the emulator sees no other accesses. They must give the same
// results there. main returns how many kernels are wrong. With an argument, it launches them from another thread, too.
#include <cuda_pipeline.h>

#include <thread>

#include "host.h"

constexpr int kThreads = 64;

// sums[0] = the sum of in, sums[1] = the number of threads
__global__ void sums_by_atomics(const float* in, float* sums) {
  __shared__ float partial[2];
  if (threadIdx.x < 2) partial[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&partial[0], in[threadIdx.x]);
  atomicAdd(&partial[1], 1.0f);
  __syncthreads();
  if (threadIdx.x < 2) atomicAdd(&sums[threadIdx.x], partial[threadIdx.x]);
}

__global__ void copies_in_the_background(const float* in, float* out) {
  __shared__ float4 tile[kThreads / 4];
  if (threadIdx.x < kThreads / 4)
    __pipeline_memcpy_async(&tile[threadIdx.x], reinterpret_cast<const float4*>(in) + threadIdx.x, 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = reinterpret_cast<const float*>(tile)[kThreads - 1 - threadIdx.x];
}

// Thread 0 is first, then thread 63, 62, and so on: each waits for one that the emulator starts later.
__global__ void turns(int* taken, int* order) {
  const int mine = (kThreads - static_cast<int>(threadIdx.x)) % kThreads;
  while (atomicAdd(taken, 0) != mine) {
  }
  order[threadIdx.x] = mine;
  atomicAdd(taken, 1);
}

int count_wrong() {
  const std::vector<float> in = numbers(kThreads);
  Buffer<float> x(in), sums(std::vector<float>{0, 0}), out(kThreads);
  Buffer<int> taken(std::vector<int>{0}), order(kThreads);
  cuda_launch(sums_by_atomics, {1, kThreads}, x.data, sums.data);
  cuda_launch(copies_in_the_background, {1, kThreads}, x.data, out.data);
  cuda_launch(turns, {1, kThreads}, taken.data, order.data);

  float sum = 0;
  for (float value : in) sum += value;
  int wrong = !near(sums.host()[0], sum) || sums.host()[1] != kThreads;
  const std::vector<float> copied = out.host();
  wrong += copied != std::vector<float>(in.rbegin(), in.rend());
  wrong += taken.host()[0] != kThreads || order.host()[1] != kThreads - 1;
  return wrong + (cudaGetLastError() != cudaSuccess);
}

int main(int argc, char**) {
  int wrong = count_wrong();
  if (argc > 1) std::thread([&] { wrong += count_wrong(); }).join();
  return wrong;
}
