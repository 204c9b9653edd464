// CUDA's arithmetic functions: integers, bits, floats and conversions between them.
#pragma once

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
#define CUDA_EMULATOR_MIXED_MIN_MAX(A, B, T)                                              \
  __device__ inline T min(A a, B b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  __device__ inline T min(B a, A b) { return min(static_cast<T>(a), static_cast<T>(b)); } \
  __device__ inline T max(A a, B b) { return max(static_cast<T>(a), static_cast<T>(b)); } \
  __device__ inline T max(B a, A b) { return max(static_cast<T>(a), static_cast<T>(b)); }
CUDA_EMULATOR_MIXED_MIN_MAX(int, unsigned, unsigned)
CUDA_EMULATOR_MIXED_MIN_MAX(long, unsigned long, unsigned long)
CUDA_EMULATOR_MIXED_MIN_MAX(long long, unsigned long long, unsigned long long)
__device__ inline float min(float a, float b) { return fminf(a, b); }
__device__ inline float max(float a, float b) { return fmaxf(a, b); }
__device__ inline double min(double a, double b) { return fmin(a, b); }
__device__ inline double max(double a, double b) { return fmax(a, b); }
CUDA_EMULATOR_MIXED_MIN_MAX(float, double, double)
#undef CUDA_EMULATOR_MIXED_MIN_MAX
__device__ inline unsigned umin(unsigned a, unsigned b) { return min(a, b); }
__device__ inline unsigned umax(unsigned a, unsigned b) { return max(a, b); }
__device__ inline long long llmin(long long a, long long b) { return min(a, b); }
__device__ inline long long llmax(long long a, long long b) { return max(a, b); }

__device__ inline float rsqrtf(float x) { return 1 / sqrtf(x); }
__device__ inline double rsqrt(double x) { return 1 / sqrt(x); }
__device__ inline float rcbrtf(float x) { return 1 / cbrtf(x); }
__device__ inline float rhypotf(float x, float y) { return 1 / hypotf(x, y); }
__device__ inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }
__device__ inline float rnorm3df(float x, float y, float z) { return 1 / norm3df(x, y, z); }
__device__ inline float norm4df(float x, float y, float z, float w) {
  return sqrtf(x * x + y * y + z * z + w * w);
}
__device__ inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__device__ inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752); }
__device__ inline float sinpif(float x) { return sin(3.14159265358979324 * x); }
__device__ inline float cospif(float x) { return cos(3.14159265358979324 * x); }
__device__ inline void sincospif(float x, float* sine, float* cosine) {
  *sine = sinpif(x);
  *cosine = cospif(x);
}
__device__ inline float fdividef(float a, float b) { return a / b; }
__device__ inline float __fdividef(float a, float b) { return a / b; }
__device__ inline float __frcp_rn(float x) { return 1 / x; }
__device__ inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
__device__ inline float __fsqrt_rn(float x) { return sqrtf(x); }
__device__ inline float __fadd_rn(float a, float b) { return a + b; }
__device__ inline float __fmul_rn(float a, float b) { return a * b; }
__device__ inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
__device__ inline float __fsub_rn(float a, float b) { return a - b; }
__device__ inline float __fdiv_rn(float a, float b) { return a / b; }
__device__ inline double __dadd_rn(double a, double b) { return a + b; }
__device__ inline double __dsub_rn(double a, double b) { return a - b; }
__device__ inline double __dmul_rn(double a, double b) { return a * b; }
__device__ inline double __ddiv_rn(double a, double b) { return a / b; }
__device__ inline double __drcp_rn(double x) { return 1 / x; }
__device__ inline double __dsqrt_rn(double x) { return sqrt(x); }
__device__ inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
__device__ inline float __saturatef(float x) { return fminf(fmaxf(x, 0), 1); }
__device__ inline float __expf_(float x) { return expf(x); }
__device__ inline float __sinf_(float x) { return sinf(x); }
__device__ inline float __cosf_(float x) { return cosf(x); }
__device__ inline float __logf_(float x) { return logf(x); }
__device__ inline float __powf_(float x, float y) { return powf(x, y); }
__device__ inline float __tanf_(float x) { return tanf(x); }
__device__ inline float __log2f_(float x) { return log2f(x); }
__device__ inline float __log10f_(float x) { return log10f(x); }
__device__ inline float __exp10f_(float x) { return powf(10, x); }
__device__ inline void __sincosf_(float x, float* sine, float* cosine) {
  *sine = sinf(x);
  *cosine = cosf(x);
}
// glibc has functions with these names and another linkage.
#define __expf __expf_
#define __sinf __sinf_
#define __cosf __cosf_
#define __logf __logf_
#define __powf __powf_
#define __tanf __tanf_
#define __log2f __log2f_
#define __log10f __log10f_
#define __exp10f __exp10f_
#define __sincosf __sincosf_

__device__ inline int __popc(unsigned x) { return __builtin_popcount(x); }
__device__ inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
__device__ inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
__device__ inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
__device__ inline int __ffs(int x) { return __builtin_ffs(x); }
__device__ inline int __ffsll(long long x) { return __builtin_ffsll(x); }
__device__ inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}
__device__ inline unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
__device__ inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const unsigned long long both = static_cast<unsigned long long>(y) << 32 | x;
  unsigned result = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned wanted = selector >> 4 * i, byte = both >> 8 * (wanted & 7) & 0xff;
    result |= (wanted & 8 ? (byte >> 7) * 0xff : byte) << 8 * i;
  }
  return result;
}
__device__ inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return (static_cast<unsigned long long>(high) << 32 | low) << (shift & 31) >> 32;
}
__device__ inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return (static_cast<unsigned long long>(high) << 32 | low) >> (shift & 31);
}
__device__ inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
__device__ inline unsigned __umul24(unsigned a, unsigned b) {
  return (a & 0xffffff) * (b & 0xffffff);
}
__device__ inline int __mulhi(int a, int b) { return static_cast<long long>(a) * b >> 32; }
__device__ inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned long long>(a) * b >> 32;
}
__device__ inline long long __mul64hi(long long a, long long b) {
  return static_cast<__int128>(a) * b >> 64;
}
__device__ inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned __int128>(a) * b >> 64;
}
__device__ inline unsigned __sad(int a, int b, unsigned sum) {
  return sum + (a < b ? unsigned(b) - unsigned(a) : unsigned(a) - unsigned(b));
}
__device__ inline unsigned __usad(unsigned a, unsigned b, unsigned sum) {
  return sum + (a < b ? b - a : a - b);
}
__device__ inline int __dp4a(int a, int b, int sum) {
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<signed char>(a >> i) * static_cast<signed char>(b >> i);
  return sum;
}
__device__ inline unsigned __dp4a(unsigned a, unsigned b, unsigned sum) {
  for (int i = 0; i < 32; i += 8) sum += (a >> i & 0xff) * (b >> i & 0xff);
  return sum;
}
// Operations on each of the four bytes of a word.
#define CUDA_EMULATOR_BYTES(name, Byte, expression)                           \
  __device__ inline unsigned name(unsigned x, unsigned y) {                   \
    unsigned result = 0;                                                      \
    for (int i = 0; i < 32; i += 8) {                                         \
      const int a = static_cast<Byte>(x >> i), b = static_cast<Byte>(y >> i); \
      result |= (static_cast<unsigned>(expression) & 0xff) << i;              \
    }                                                                         \
    return result;                                                            \
  }
CUDA_EMULATOR_BYTES(__vadd4, unsigned char, a + b)
CUDA_EMULATOR_BYTES(__vsub4, unsigned char, a - b)
CUDA_EMULATOR_BYTES(__vaddss4, signed char, min(127, max(-128, a + b)))
CUDA_EMULATOR_BYTES(__vsubss4, signed char, min(127, max(-128, a - b)))
CUDA_EMULATOR_BYTES(__vmaxs4, signed char, max(a, b))
CUDA_EMULATOR_BYTES(__vmins4, signed char, min(a, b))
CUDA_EMULATOR_BYTES(__vmaxu4, unsigned char, max(a, b))
CUDA_EMULATOR_BYTES(__vminu4, unsigned char, min(a, b))
CUDA_EMULATOR_BYTES(__vabsdiffu4, unsigned char, a < b ? b - a : a - b)
CUDA_EMULATOR_BYTES(__vcmpeq4, unsigned char, a == b ? 0xff : 0)
CUDA_EMULATOR_BYTES(__vcmpne4, unsigned char, a != b ? 0xff : 0)
#undef CUDA_EMULATOR_BYTES

// ---- bits
#define CUDA_EMULATOR_BITS(name, To, From) \
  __device__ inline To name(From x) { return __builtin_bit_cast(To, x); }
CUDA_EMULATOR_BITS(__float_as_int, int, float)
CUDA_EMULATOR_BITS(__float_as_uint, unsigned, float)
CUDA_EMULATOR_BITS(__int_as_float, float, int)
CUDA_EMULATOR_BITS(__uint_as_float, float, unsigned)
CUDA_EMULATOR_BITS(__double_as_longlong, long long, double)
CUDA_EMULATOR_BITS(__longlong_as_double, double, long long)
#undef CUDA_EMULATOR_BITS
__device__ inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
__device__ inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
__device__ inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(static_cast<long long>(high) << 32 | static_cast<unsigned>(low));
}

// ---- conversions. A number outside the range of integers becomes the nearest one, and NaN 0.
namespace cuda_emulator {
template <class T>
__device__ inline T to_integer(double x) {
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  if (x != x) return 0;
  if (x <= static_cast<double>(least)) return least;
  return x >= static_cast<double>(most) ? most : static_cast<T>(x);
}
}  // namespace cuda_emulator
#define CUDA_EMULATOR_TO(name, From, To)                    \
  __device__ inline To name##_rn(From x) {                  \
    return cuda_emulator::to_integer<To>(rint(double(x)));  \
  }                                                         \
  __device__ inline To name##_rz(From x) {                  \
    return cuda_emulator::to_integer<To>(trunc(double(x))); \
  }                                                         \
  __device__ inline To name##_ru(From x) {                  \
    return cuda_emulator::to_integer<To>(ceil(double(x)));  \
  }                                                         \
  __device__ inline To name##_rd(From x) { return cuda_emulator::to_integer<To>(floor(double(x))); }
CUDA_EMULATOR_TO(__float2int, float, int)
CUDA_EMULATOR_TO(__float2uint, float, unsigned)
CUDA_EMULATOR_TO(__float2ll, float, long long)
CUDA_EMULATOR_TO(__float2ull, float, unsigned long long)
CUDA_EMULATOR_TO(__double2int, double, int)
CUDA_EMULATOR_TO(__double2uint, double, unsigned)
CUDA_EMULATOR_TO(__double2ll, double, long long)
CUDA_EMULATOR_TO(__double2ull, double, unsigned long long)
CUDA_EMULATOR_TO(__half2int, __half, int)
CUDA_EMULATOR_TO(__half2uint, __half, unsigned)
CUDA_EMULATOR_TO(__half2short, __half, short)
CUDA_EMULATOR_TO(__half2ushort, __half, unsigned short)
CUDA_EMULATOR_TO(__bfloat162int, __nv_bfloat16, int)
CUDA_EMULATOR_TO(__bfloat162uint, __nv_bfloat16, unsigned)
#undef CUDA_EMULATOR_TO
// Rounded to the nearest; ties to even.
#define CUDA_EMULATOR_FROM(name, From, To) \
  __device__ inline To name(From x) { return static_cast<To>(x); }
CUDA_EMULATOR_FROM(__int2float_rn, int, float)
CUDA_EMULATOR_FROM(__uint2float_rn, unsigned, float)
CUDA_EMULATOR_FROM(__ll2float_rn, long long, float)
CUDA_EMULATOR_FROM(__ull2float_rn, unsigned long long, float)
CUDA_EMULATOR_FROM(__int2double_rn, int, double)
CUDA_EMULATOR_FROM(__uint2double_rn, unsigned, double)
CUDA_EMULATOR_FROM(__ll2double_rn, long long, double)
CUDA_EMULATOR_FROM(__ull2double_rn, unsigned long long, double)
CUDA_EMULATOR_FROM(__double2float_rn, double, float)
CUDA_EMULATOR_FROM(__int2half_rn, int, __half)
CUDA_EMULATOR_FROM(__uint2half_rn, unsigned, __half)
CUDA_EMULATOR_FROM(__short2half_rn, short, __half)
CUDA_EMULATOR_FROM(__ushort2half_rn, unsigned short, __half)
CUDA_EMULATOR_FROM(__int2bfloat16_rn, int, __nv_bfloat16)
CUDA_EMULATOR_FROM(__double2half, double, __half)
CUDA_EMULATOR_FROM(__double2bfloat16, double, __nv_bfloat16)
#undef CUDA_EMULATOR_FROM
