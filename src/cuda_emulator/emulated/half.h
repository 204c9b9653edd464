// half and bf16 with their arithmetic. Each operation is computed in f32 and rounded once, like the
// hardware's result. The functions are always inlined, so that an access to memory counts for the
// line that calls them.
#pragma once

namespace cuda_emulator {

float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);  // to nearest, ties to even
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c);  // rounded once
std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c);

struct F16 {
  __device__ static inline float to_float(std::uint16_t bits) { return f16_to_f32(bits); }
  __device__ static inline std::uint16_t from_float(float value) { return f32_to_f16(value); }
  __device__ static inline std::uint16_t fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    return fma_f16(a, b, c);
  }
};

struct Bf16 {
  __device__ static inline float to_float(std::uint16_t bits) { return bf16_to_f32(bits); }
  __device__ static inline std::uint16_t from_float(float value) { return f32_to_bf16(value); }
  __device__ static inline std::uint16_t fma(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    return fma_bf16(a, b, c);
  }
};

// A number of 16 bits. CUDA has the same functions for both formats.
template <class Format>
struct Number16 {
  std::uint16_t bits;

  Number16() = default;
  __device__ inline Number16(float value) : bits(Format::from_float(value)) {}
  __device__ inline Number16(double value) : Number16(static_cast<float>(value)) {}
  template <class T>
  requires std::is_integral_v<T> __device__ inline Number16(T value)
      : Number16(static_cast<float>(value)) {}
  __device__ inline operator float() const { return Format::to_float(bits); }

  __device__ friend inline Number16 operator+(Number16 a, Number16 b) { return a.f() + b.f(); }
  __device__ friend inline Number16 operator-(Number16 a, Number16 b) { return a.f() - b.f(); }
  __device__ friend inline Number16 operator*(Number16 a, Number16 b) { return a.f() * b.f(); }
  __device__ friend inline Number16 operator/(Number16 a, Number16 b) { return a.f() / b.f(); }
  __device__ friend inline Number16 operator-(Number16 a) { return -a.f(); }
  __device__ friend inline Number16 operator+(Number16 a) { return a; }
  __device__ friend inline Number16& operator++(Number16& a) { return a = a + Number16(1); }
  __device__ friend inline Number16& operator--(Number16& a) { return a = a - Number16(1); }
  __device__ friend inline Number16& operator+=(Number16& a, Number16 b) { return a = a + b; }
  __device__ friend inline Number16& operator-=(Number16& a, Number16 b) { return a = a - b; }
  __device__ friend inline Number16& operator*=(Number16& a, Number16 b) { return a = a * b; }
  __device__ friend inline Number16& operator/=(Number16& a, Number16 b) { return a = a / b; }
  __device__ friend inline Number16 __hadd(Number16 a, Number16 b) { return a + b; }
  __device__ friend inline Number16 __hsub(Number16 a, Number16 b) { return a - b; }
  __device__ friend inline Number16 __hmul(Number16 a, Number16 b) { return a * b; }
  __device__ friend inline Number16 __hdiv(Number16 a, Number16 b) { return a / b; }
  __device__ friend inline Number16 __hneg(Number16 a) { return -a; }
  __device__ friend inline Number16 __habs(Number16 a) { return fabsf(a.f()); }
  __device__ friend inline bool __hisnan(Number16 a) { return a != a; }
  __device__ friend inline int __hisinf(Number16 a) {
    return fabsf(a.f()) != INFINITY ? 0 : a.f() < 0 ? -1 : 1;
  }
  __device__ friend inline Number16 __hadd_sat(Number16 a, Number16 b) {
    return fminf(fmaxf(a.f() + b.f(), 0), 1);
  }
  __device__ friend inline Number16 hexp(Number16 a) { return expf(a.f()); }
  __device__ friend inline Number16 hexp2(Number16 a) { return exp2f(a.f()); }
  __device__ friend inline Number16 hlog(Number16 a) { return logf(a.f()); }
  __device__ friend inline Number16 hlog2(Number16 a) { return log2f(a.f()); }
  __device__ friend inline Number16 hsqrt(Number16 a) { return sqrtf(a.f()); }
  __device__ friend inline Number16 hrsqrt(Number16 a) { return 1 / sqrtf(a.f()); }
  __device__ friend inline Number16 hrcp(Number16 a) { return 1 / a.f(); }
  __device__ friend inline Number16 hfloor(Number16 a) { return floorf(a.f()); }
  __device__ friend inline Number16 hceil(Number16 a) { return ceilf(a.f()); }
  __device__ friend inline Number16 hrint(Number16 a) { return rintf(a.f()); }
  __device__ friend inline Number16 htrunc(Number16 a) { return truncf(a.f()); }
  __device__ friend inline Number16 hsin(Number16 a) { return sinf(a.f()); }
  __device__ friend inline Number16 hcos(Number16 a) { return cosf(a.f()); }
  __device__ friend inline Number16 __hfma(Number16 a, Number16 b, Number16 c) {
    a.bits = Format::fma(a.bits, b.bits, c.bits);
    return a;
  }

  __device__ friend inline bool operator<(Number16 a, Number16 b) { return a.f() < b.f(); }
  __device__ friend inline bool operator>(Number16 a, Number16 b) { return a.f() > b.f(); }
  __device__ friend inline bool operator<=(Number16 a, Number16 b) { return a.f() <= b.f(); }
  __device__ friend inline bool operator>=(Number16 a, Number16 b) { return a.f() >= b.f(); }
  __device__ friend inline bool operator==(Number16 a, Number16 b) { return a.f() == b.f(); }
  __device__ friend inline bool operator!=(Number16 a, Number16 b) { return a.f() != b.f(); }
  __device__ friend inline bool __hlt(Number16 a, Number16 b) { return a < b; }
  __device__ friend inline bool __hgt(Number16 a, Number16 b) { return a > b; }
  __device__ friend inline bool __hle(Number16 a, Number16 b) { return a <= b; }
  __device__ friend inline bool __hge(Number16 a, Number16 b) { return a >= b; }
  __device__ friend inline bool __heq(Number16 a, Number16 b) { return a == b; }
  __device__ friend inline bool __hne(Number16 a, Number16 b) { return a != b; }
  __device__ friend inline Number16 __hmax(Number16 a, Number16 b) {
    return a < b || a != a ? b : a;
  }
  __device__ friend inline Number16 __hmin(Number16 a, Number16 b) {
    return a > b || a != a ? b : a;
  }

 private:
  __device__ inline float f() const { return Format::to_float(bits); }
};

// Two numbers of 16 bits in four bytes.
template <class Format>
struct alignas(4) Pair16 {
  Number16<Format> x, y;

  __device__ friend inline Pair16 operator+(Pair16 a, Pair16 b) { return {a.x + b.x, a.y + b.y}; }
  __device__ friend inline Pair16 operator-(Pair16 a, Pair16 b) { return {a.x - b.x, a.y - b.y}; }
  __device__ friend inline Pair16 operator*(Pair16 a, Pair16 b) { return {a.x * b.x, a.y * b.y}; }
  __device__ friend inline Pair16 operator/(Pair16 a, Pair16 b) { return {a.x / b.x, a.y / b.y}; }
  __device__ friend inline Pair16 __hadd2(Pair16 a, Pair16 b) { return a + b; }
  __device__ friend inline Pair16 __hsub2(Pair16 a, Pair16 b) { return a - b; }
  __device__ friend inline Pair16 __hmul2(Pair16 a, Pair16 b) { return a * b; }
  __device__ friend inline Pair16 __h2div(Pair16 a, Pair16 b) { return a / b; }
  __device__ friend inline Pair16 __hfma2(Pair16 a, Pair16 b, Pair16 c) {
    return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
  }
  __device__ friend inline Pair16 operator-(Pair16 a) { return {-a.x, -a.y}; }
  __device__ friend inline Pair16& operator+=(Pair16& a, Pair16 b) { return a = a + b; }
  __device__ friend inline Pair16& operator-=(Pair16& a, Pair16 b) { return a = a - b; }
  __device__ friend inline Pair16& operator*=(Pair16& a, Pair16 b) { return a = a * b; }
  __device__ friend inline Pair16& operator/=(Pair16& a, Pair16 b) { return a = a / b; }
  __device__ friend inline bool operator==(Pair16 a, Pair16 b) { return a.x == b.x && a.y == b.y; }
  __device__ friend inline Pair16 __hneg2(Pair16 a) { return -a; }
  __device__ friend inline Pair16 __habs2(Pair16 a) { return {__habs(a.x), __habs(a.y)}; }
  __device__ friend inline Pair16 __hmax2(Pair16 a, Pair16 b) {
    return {__hmax(a.x, b.x), __hmax(a.y, b.y)};
  }
  __device__ friend inline Pair16 __hmin2(Pair16 a, Pair16 b) {
    return {__hmin(a.x, b.x), __hmin(a.y, b.y)};
  }
  __device__ friend inline bool __hbeq2(Pair16 a, Pair16 b) { return a == b; }
  __device__ friend inline Pair16 h2exp(Pair16 a) { return {hexp(a.x), hexp(a.y)}; }
  __device__ friend inline Pair16 h2log(Pair16 a) { return {hlog(a.x), hlog(a.y)}; }
  __device__ friend inline Pair16 h2sqrt(Pair16 a) { return {hsqrt(a.x), hsqrt(a.y)}; }
  __device__ friend inline Pair16 h2rsqrt(Pair16 a) { return {hrsqrt(a.x), hrsqrt(a.y)}; }
  __device__ friend inline Pair16 h2rcp(Pair16 a) { return {hrcp(a.x), hrcp(a.y)}; }
  __device__ friend inline float __low2float(Pair16 v) { return v.x; }
  __device__ friend inline float __high2float(Pair16 v) { return v.y; }
};

}  // namespace cuda_emulator

using __half = cuda_emulator::Number16<cuda_emulator::F16>;
using __half2 = cuda_emulator::Pair16<cuda_emulator::F16>;
using __nv_bfloat16 = cuda_emulator::Number16<cuda_emulator::Bf16>;
using __nv_bfloat162 = cuda_emulator::Pair16<cuda_emulator::Bf16>;

// Functions that have the format in their names.
__device__ inline unsigned short __half_as_ushort(__half value) { return value.bits; }
__device__ inline __half __ushort_as_half(unsigned short bits) {
  __half result;
  result.bits = bits;
  return result;
}
__device__ inline float __half2float(__half a) { return a; }
__device__ inline __half __float2half(float a) { return a; }
__device__ inline __half __float2half_rn(float a) { return a; }
__device__ inline __half2 __float2half2_rn(float a) { return {a, a}; }
__device__ inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
__device__ inline __half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
__device__ inline __half2 __half2half2(__half a) { return {a, a}; }
__device__ inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__device__ inline float2 __half22float2(__half2 v) { return {v.x, v.y}; }
__device__ inline __half __low2half(__half2 v) { return v.x; }
__device__ inline __half __high2half(__half2 v) { return v.y; }

__device__ inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
__device__ inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
__device__ inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
__device__ inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
__device__ inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
__device__ inline __half2 make_half2(__half x, __half y) { return {x, y}; }
__device__ inline short __half_as_short(__half value) { return short(value.bits); }
__device__ inline __half __short_as_half(short bits) { return __ushort_as_half(bits); }

__device__ inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
__device__ inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
__device__ inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 result;
  result.bits = bits;
  return result;
}
__device__ inline float __bfloat162float(__nv_bfloat16 a) { return a; }
__device__ inline __nv_bfloat16 __float2bfloat16(float a) { return a; }
__device__ inline __nv_bfloat16 __float2bfloat16_rn(float a) { return a; }
__device__ inline __nv_bfloat162 __float2bfloat162_rn(float a) { return {a, a}; }
__device__ inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
__device__ inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
__device__ inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
__device__ inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
__device__ inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
__device__ inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
__device__ inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
