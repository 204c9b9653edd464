// The only header that a .cu file needs to compile both with nvcc and with the emulator. With nvcc,
// it includes CUDA's own headers. cuda_launch replaces kernel<<<grid, block, shared,
// stream>>>(arguments...), which a C++ compiler cannot parse.
#pragma once

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>
#else
#include "emulated/cuda.h"
#endif

struct LaunchShape {
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;  // for `extern __shared__` arrays
  cudaStream_t stream = nullptr;
};

// cuda_launch(scale, {blocks, 256}, x, y, n) runs scale<<<blocks, 256>>>(x, y, n).
#ifdef __CUDACC__
template <class... Parameters, class... Arguments>
void cuda_launch(void (*kernel)(Parameters...), LaunchShape shape, Arguments... arguments) {
  kernel<<<shape.grid, shape.block, shape.shared_bytes, shape.stream>>>(
      static_cast<Parameters>(arguments)...);
}
#else
template <class Parameter, class Argument>
concept FitsParameter = requires(Argument argument) {
  static_cast<Parameter>(argument);
};

// Not inlined, because its return address tells the checker the line of the launch.
template <class... Parameters, class... Arguments>
__attribute__((noinline)) void cuda_launch(void (*kernel)(Parameters...), LaunchShape shape,
                                           Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "cuda_launch: the kernel has another number of parameters");
  static_assert((FitsParameter<Parameters, Arguments> && ...),
                "cuda_launch: an argument does not fit the kernel's parameter: compare their order "
                "and their types");
  const cuda_emulator::Parameters<Parameters...> values(kernel,
                                                        static_cast<Parameters>(arguments)...);
  cuda_emulator::Launch launch;
  launch.kernel = reinterpret_cast<const void*>(kernel);
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.shared_bytes = shape.shared_bytes;
  launch.stream = shape.stream;
  launch.parameters = &values;
  launch.place = __builtin_return_address(0);
  cuda_emulator::run(launch);
}
#endif
