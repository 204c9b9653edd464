// What CUDA's headers declare, for a compiler that knows nothing of CUDA.
#pragma once

// With .h: CUDA has abs, isnan and the like for each type without std::.
#include <math.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <tuple>

#define __global__
// Inlined, so that a struct in memory that is passed to a function, or assigned from one, is copied
// by the caller: g++ does not report an access that a call itself makes.
#define __device__ __attribute__((always_inline))
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// One block of a launch runs at a time, and all of them on one thread of the CPU, so a thread-local
// variable is seen by the threads of one block. (`static` would not do: `extern __shared__` must
// compile too.)
#define __shared__ thread_local

#include "emulated/host.h"
#include "emulated/vectors.h"
// vectors.h first: half.h has vectors of two.
#include "emulated/half.h"
// half.h first: the functions of a kernel take halves.
#include "emulated/kernel.h"
#include "emulated/numbers.h"
