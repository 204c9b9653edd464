// The variables and functions of CUDA for kernels. The functions are defined in the emulator's own
// files, which are compiled without instrumentation. So each function reports its accesses to the
// checker itself, for the line that called it.
#pragma once

// Constants for a kernel. The emulator sets them when it switches from one thread to another.
#ifdef CUDA_EMULATOR_SETS_THREAD
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
#else
extern const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
#endif
extern const int warpSize;  // no constexpr: nvcc takes no array of this size

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
long long clock64();  // the number of accesses of all threads so far: no time is measured
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
unsigned __activemask();
#define CUDA_EMULATOR_MATCH(T)                       \
  unsigned __match_any_sync(unsigned mask, T value); \
  unsigned __match_all_sync(unsigned mask, T value, int* all_are_equal);
#define CUDA_EMULATOR_MATCHED_TYPES(apply)                                     \
  apply(int) apply(unsigned) apply(long) apply(unsigned long) apply(long long) \
      apply(unsigned long long) apply(float) apply(double)
CUDA_EMULATOR_MATCHED_TYPES(CUDA_EMULATOR_MATCH)
#undef CUDA_EMULATOR_MATCH

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

// ---- atomics: (type, name, the new value). The functions with _block or _system behind the name
// do the same here.
#define CUDA_EMULATOR_ATOMICS_OF(apply, T)                                                    \
  apply(T, atomicAdd, old + value) apply(T, atomicSub, old - value)                           \
      apply(T, atomicExch, (void(old), value)) apply(T, atomicMin, value < old ? value : old) \
          apply(T, atomicMax, old < value ? value : old) apply(T, atomicAnd, old& value)      \
              apply(T, atomicOr, old | value) apply(T, atomicXor, old ^ value)
#define CUDA_EMULATOR_ATOMICS(apply)                                                              \
  CUDA_EMULATOR_ATOMICS_OF(apply, int)                                                            \
  CUDA_EMULATOR_ATOMICS_OF(apply, unsigned)                                                       \
  CUDA_EMULATOR_ATOMICS_OF(apply, unsigned long long)                                             \
  apply(long long, atomicMin, value < old ? value : old)                                          \
      apply(long long, atomicMax, old < value ? value : old) apply(float, atomicAdd, old + value) \
          apply(double, atomicAdd, old + value) apply(float, atomicExch, (void(old), value))      \
              apply(__half, atomicAdd, old + value) apply(__half2, atomicAdd, old + value)        \
                  apply(__nv_bfloat16, atomicAdd, old + value)                                    \
                      apply(__nv_bfloat162, atomicAdd, old + value)                               \
                          apply(unsigned, atomicInc, old >= value ? 0 : old + 1) apply(           \
                              unsigned, atomicDec, old == 0 || old > value ? value : old - 1)
#define CUDA_EMULATOR_ATOMIC(T, name, result) \
  T name(T* address, T value);                \
  T name##_block(T* address, T value);        \
  T name##_system(T* address, T value);
#define CUDA_EMULATOR_CAS_TYPES(apply) \
  apply(int) apply(unsigned) apply(unsigned long long) apply(unsigned short)
#define CUDA_EMULATOR_CAS(T)                         \
  T atomicCAS(T* address, T compare, T value);       \
  T atomicCAS_block(T* address, T compare, T value); \
  T atomicCAS_system(T* address, T compare, T value);
CUDA_EMULATOR_ATOMICS(CUDA_EMULATOR_ATOMIC)
CUDA_EMULATOR_CAS_TYPES(CUDA_EMULATOR_CAS)
#undef CUDA_EMULATOR_ATOMIC
#undef CUDA_EMULATOR_CAS

// ---- asynchronous copies from global to shared memory (cp.async); they happen at the wait
void __pipeline_memcpy_async(void* shared, const void* global, size_t bytes, size_t zeros = 0);
void __pipeline_commit();
void __pipeline_wait_prior(size_t groups);

// ---- loads and stores with a hint for the caches; the emulator has no caches
#define CUDA_EMULATOR_LOAD(name)               \
  template <class T>                           \
  __device__ inline T name(const T* address) { \
    return *address;                           \
  }
CUDA_EMULATOR_LOAD(__ldg)
CUDA_EMULATOR_LOAD(__ldca)
CUDA_EMULATOR_LOAD(__ldcg)
CUDA_EMULATOR_LOAD(__ldcs)
CUDA_EMULATOR_LOAD(__ldlu)
#undef CUDA_EMULATOR_LOAD
#define CUDA_EMULATOR_STORE(name)                    \
  template <class T>                                 \
  __device__ inline void name(T* address, T value) { \
    *address = value;                                \
  }
CUDA_EMULATOR_STORE(__stwb)
CUDA_EMULATOR_STORE(__stcg)
CUDA_EMULATOR_STORE(__stcs)
CUDA_EMULATOR_STORE(__stwt)
#undef CUDA_EMULATOR_STORE

// ---- launches: see cuda_launch in cuda_emulator.h
namespace cuda_emulator {

struct AnyParameters {
  virtual ~AnyParameters() = default;
  virtual AnyParameters* copy() const = 0;  // with new
  virtual void call() const = 0;            // runs one thread
  virtual std::size_t size() const = 0;     // bytes of the object, which kernels may read
};

template <class... P>
struct Parameters final : AnyParameters {
  static_assert((std::is_trivially_copyable_v<P> && ...), "a GPU copies parameters byte by byte");
  explicit Parameters(void (*kernel)(P...), P... values) : kernel(kernel), values(values...) {}
  AnyParameters* copy() const override { return new Parameters(*this); }
  // The kernel is called here and not by std::apply, because tools/cuda_compile.py allows a call
  // through a pointer only in the emulator's own functions.
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
  const AnyParameters* parameters = nullptr;  // owned by the caller
  const void* place = nullptr;                // the return address of cuda_launch
};

// Runs a launch, or adds it to the graph that its stream captures.
void run(const Launch& launch);

}  // namespace cuda_emulator
