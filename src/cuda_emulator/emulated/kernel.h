// What a kernel may use. The functions are defined in the emulator's own files, which are compiled
// without instrumentation: each tells the checker itself what it reads and writes, for the line
// that called it.
#pragma once

// Constants for a kernel; the emulator sets them when it goes from one thread to another.
#ifdef CUDA_EMULATOR_SETS_THREAD
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
#else
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
#endif
constexpr int warpSize = 32;

// ---- barriers and fences
void __syncthreads();
int __syncthreads_or(int predicate);
int __syncthreads_and(int predicate);
int __syncthreads_count(int predicate);
void __syncwarp(unsigned mask = 0xffffffffu);
void __threadfence();
void __threadfence_block();
void __threadfence_system();
[[noreturn]] void __trap();
void __nanosleep(unsigned nanoseconds);

// ---- votes and reductions of a warp
int __any_sync(unsigned mask, int predicate);
int __all_sync(unsigned mask, int predicate);
unsigned __ballot_sync(unsigned mask, int predicate);
int __reduce_add_sync(unsigned mask, int value);
int __reduce_min_sync(unsigned mask, int value);
int __reduce_max_sync(unsigned mask, int value);
unsigned __reduce_add_sync(unsigned mask, unsigned value);
unsigned __reduce_min_sync(unsigned mask, unsigned value);
unsigned __reduce_max_sync(unsigned mask, unsigned value);
unsigned __reduce_and_sync(unsigned mask, unsigned value);
unsigned __reduce_or_sync(unsigned mask, unsigned value);
unsigned __reduce_xor_sync(unsigned mask, unsigned value);
unsigned __match_any_sync(unsigned mask, unsigned value);
unsigned __match_any_sync(unsigned mask, int value);

// ---- shuffles
#define CUDA_EMULATOR_SHUFFLES(T)                                                \
  T __shfl_sync(unsigned mask, T value, int lane, int width = 32);               \
  T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32);   \
  T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32); \
  T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32);
#define CUDA_EMULATOR_SHUFFLED_TYPES(apply)                                             \
  apply(int) apply(unsigned) apply(long) apply(unsigned long) apply(long long)          \
      apply(unsigned long long) apply(float) apply(double) apply(__half) apply(__half2) \
          apply(__nv_bfloat16) apply(__nv_bfloat162)
CUDA_EMULATOR_SHUFFLED_TYPES(CUDA_EMULATOR_SHUFFLES)
#undef CUDA_EMULATOR_SHUFFLES

// ---- atomics
#define CUDA_EMULATOR_ATOMICS(T)     \
  T atomicAdd(T* address, T value);  \
  T atomicSub(T* address, T value);  \
  T atomicExch(T* address, T value); \
  T atomicMin(T* address, T value);  \
  T atomicMax(T* address, T value);  \
  T atomicAnd(T* address, T value);  \
  T atomicOr(T* address, T value);   \
  T atomicXor(T* address, T value);  \
  T atomicCAS(T* address, T compare, T value);
CUDA_EMULATOR_ATOMICS(int)
CUDA_EMULATOR_ATOMICS(unsigned)
CUDA_EMULATOR_ATOMICS(unsigned long long)
#undef CUDA_EMULATOR_ATOMICS
unsigned atomicInc(unsigned* address, unsigned limit);
unsigned atomicDec(unsigned* address, unsigned limit);
float atomicAdd(float* address, float value);
double atomicAdd(double* address, double value);
__half atomicAdd(__half* address, __half value);
__nv_bfloat16 atomicAdd(__nv_bfloat16* address, __nv_bfloat16 value);
float atomicExch(float* address, float value);

// ---- asynchronous copies from global to shared memory (cp.async): complete at the wait
void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0);
void __pipeline_commit();
void __pipeline_wait_prior(size_t groups);

// ---- loads with a hint for the caches, which the emulator has not
#define CUDA_EMULATOR_LOAD(name)               \
  template <class T>                           \
  __device__ inline T name(const T* address) { \
    return *address;                           \
  }
CUDA_EMULATOR_LOAD(__ldg)
CUDA_EMULATOR_LOAD(__ldca)
CUDA_EMULATOR_LOAD(__ldcg)
CUDA_EMULATOR_LOAD(__ldcs)
#undef CUDA_EMULATOR_LOAD

// ---- arithmetic
#define CUDA_EMULATOR_MIN_MAX(T)                              \
  __device__ inline T min(T a, T b) { return b < a ? b : a; } \
  __device__ inline T max(T a, T b) { return a < b ? b : a; }
CUDA_EMULATOR_MIN_MAX(int)
CUDA_EMULATOR_MIN_MAX(unsigned)
CUDA_EMULATOR_MIN_MAX(long)
CUDA_EMULATOR_MIN_MAX(unsigned long)
CUDA_EMULATOR_MIN_MAX(long long)
CUDA_EMULATOR_MIN_MAX(unsigned long long)
#undef CUDA_EMULATOR_MIN_MAX
__device__ inline float min(float a, float b) { return fminf(a, b); }
__device__ inline float max(float a, float b) { return fmaxf(a, b); }
__device__ inline double min(double a, double b) { return fmin(a, b); }
__device__ inline double max(double a, double b) { return fmax(a, b); }

__device__ inline float rsqrtf(float x) { return 1 / sqrtf(x); }
__device__ inline double rsqrt(double x) { return 1 / sqrt(x); }
__device__ inline float __fdividef(float a, float b) { return a / b; }
__device__ inline float __frcp_rn(float x) { return 1 / x; }
__device__ inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
__device__ inline float __fsqrt_rn(float x) { return sqrtf(x); }
__device__ inline float __fadd_rn(float a, float b) { return a + b; }
__device__ inline float __fmul_rn(float a, float b) { return a * b; }
__device__ inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline float __saturatef(float x) { return fminf(fmaxf(x, 0), 1); }
__device__ inline float __expf_(float x) { return expf(x); }
__device__ inline float __sinf_(float x) { return sinf(x); }
__device__ inline float __cosf_(float x) { return cosf(x); }
__device__ inline float __logf_(float x) { return logf(x); }
__device__ inline float __powf_(float x, float y) { return powf(x, y); }
// glibc has functions of these names, with another linkage.
#define __expf __expf_
#define __sinf __sinf_
#define __cosf __cosf_
#define __logf __logf_
#define __powf __powf_

__device__ inline int __popc(unsigned x) { return __builtin_popcount(x); }
__device__ inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__device__ inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
__device__ inline int __ffs(int x) { return __builtin_ffs(x); }
__device__ inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
__device__ inline int __mul24(int a, int b) { return a * b; }
__device__ inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return sum;
}
__device__ inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
__device__ inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
__device__ inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
__device__ inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
__device__ inline long long __double_as_longlong(double x) {
  return __builtin_bit_cast(long long, x);
}
__device__ inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
__device__ inline int __float2int_rn(float x) { return static_cast<int>(rintf(x)); }
__device__ inline int __float2int_rd(float x) { return static_cast<int>(floorf(x)); }
__device__ inline float __int2float_rn(int x) { return static_cast<float>(x); }

// ---- launches: see cuda_launch in cuda_emulator.h
namespace cuda_emulator {

struct AnyParameters {
  virtual ~AnyParameters() = default;
  virtual AnyParameters* copy() const = 0;  // with new
  virtual void call() const = 0;            // runs one thread
  virtual std::size_t size() const = 0;     // of the object, which the threads of a kernel may read
};

template <class... P>
struct Parameters final : AnyParameters {
#ifndef __clang__  // see vectors.h
  static_assert((std::is_trivially_copyable_v<P> && ...), "a GPU copies parameters byte by byte");
#endif
  explicit Parameters(void (*kernel)(P...), P... values) : kernel(kernel), values(values...) {}
  AnyParameters* copy() const override { return new Parameters(*this); }
  // The call stands here, and not inside std::apply: tools/cuda_compile.py allows a call through a
  // pointer only in the emulator's own functions.
  void call() const override {
    std::apply([this](P... own) { kernel(own...); }, values);
  }
  std::size_t size() const override { return sizeof *this; }

  void (*kernel)(P...);
  std::tuple<P...> values;
};

struct Launch {
  const void* kernel = nullptr;
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  Stream* stream = nullptr;
  const AnyParameters* parameters = nullptr;  // the caller's
  const void* place = nullptr;                // behind the call of cuda_launch
};

// Runs a launch, or adds it to the graph that its stream captures.
void run(const Launch& launch);

}  // namespace cuda_emulator
