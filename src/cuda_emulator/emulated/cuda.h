// The declarations of CUDA's headers, for a compiler that does not know CUDA.
#pragma once

// The headers with .h, because CUDA has abs, isnan and so on without std::, for each type.
#include <math.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>

// By this alignment, tools/cuda_check.py recognises kernels in the assembler file.
#define __global__ __attribute__((aligned(64)))
// Inlined, because g++ does not report an access that a call itself makes. With inlining, the
// caller copies a struct in memory that is passed to a function, or assigned from one.
#define __device__ __attribute__((always_inline))
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __noinline__  // a function of a kernel is always inlined here
// One block of a launch runs at a time, and all blocks run on one thread of the CPU. So all threads
// of a block see the same thread-local variable. (`static` would not work, because `extern
// __shared__` must compile, too.)
#define __shared__ thread_local

#include "emulated/host.h"
#include "emulated/vectors.h"
// half.h needs vectors.h.
#include "emulated/half.h"
// kernel.h needs half.h.
#include "emulated/kernel.h"
#include "emulated/numbers.h"
