// half and bf16 with their arithmetic. Each operation is done in f32 and rounded once, as the
// hardware's result is. The functions are always inlined, so that an access to memory counts for
// the line that asks for it.
#pragma once

namespace cuda_emulator {

float f16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_f16(float value);  // to nearest, ties to even
float bf16_to_f32(std::uint16_t bits);
std::uint16_t f32_to_bf16(float value);
std::uint16_t fma_f16(std::uint16_t a, std::uint16_t b, std::uint16_t c);  // rounded once
std::uint16_t fma_bf16(std::uint16_t a, std::uint16_t b, std::uint16_t c);

}  // namespace cuda_emulator

struct __half {
  std::uint16_t bits;

  __half() = default;
  __device__ inline __half(float value) : bits(cuda_emulator::f32_to_f16(value)) {}
  __device__ inline __half(double value) : __half(static_cast<float>(value)) {}
  __device__ inline __half(int value) : __half(static_cast<float>(value)) {}
  __device__ inline operator float() const { return cuda_emulator::f16_to_f32(bits); }
};

struct alignas(4) __half2 {
  __half x, y;
};

__device__ inline float __half2float(__half a) { return static_cast<float>(a); }
__device__ inline __half __float2half(float a) { return __half(a); }
__device__ inline __half __float2half_rn(float a) { return __half(a); }
__device__ inline __half __hfma(__half a, __half b, __half c) {
  a.bits = cuda_emulator::fma_f16(a.bits, b.bits, c.bits);
  return a;
}
__device__ inline __half operator+(__half a, __half b) {
  return __half(static_cast<float>(a) + static_cast<float>(b));
}
__device__ inline __half& operator+=(__half& a, __half b) { return a = a + b; }
__device__ inline __half __hadd(__half a, __half b) { return a + b; }
__device__ inline __half2 operator+(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ inline __half2 __hadd2(__half2 a, __half2 b) { return a + b; }
__device__ inline __half operator-(__half a, __half b) {
  return __half(static_cast<float>(a) - static_cast<float>(b));
}
__device__ inline __half& operator-=(__half& a, __half b) { return a = a - b; }
__device__ inline __half __hsub(__half a, __half b) { return a - b; }
__device__ inline __half2 operator-(__half2 a, __half2 b) { return {a.x - b.x, a.y - b.y}; }
__device__ inline __half2 __hsub2(__half2 a, __half2 b) { return a - b; }
__device__ inline __half operator*(__half a, __half b) {
  return __half(static_cast<float>(a) * static_cast<float>(b));
}
__device__ inline __half& operator*=(__half& a, __half b) { return a = a * b; }
__device__ inline __half __hmul(__half a, __half b) { return a * b; }
__device__ inline __half2 operator*(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ inline __half2 __hmul2(__half2 a, __half2 b) { return a * b; }
__device__ inline __half operator/(__half a, __half b) {
  return __half(static_cast<float>(a) / static_cast<float>(b));
}
__device__ inline __half& operator/=(__half& a, __half b) { return a = a / b; }
__device__ inline __half __hdiv(__half a, __half b) { return a / b; }
__device__ inline __half2 operator/(__half2 a, __half2 b) { return {a.x / b.x, a.y / b.y}; }
__device__ inline __half2 __h2div(__half2 a, __half2 b) { return a / b; }
__device__ inline __half operator-(__half a) { return __half(-static_cast<float>(a)); }
__device__ inline bool operator<(__half a, __half b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
__device__ inline bool __hlt(__half a, __half b) { return a < b; }
__device__ inline bool operator>(__half a, __half b) {
  return static_cast<float>(a) > static_cast<float>(b);
}
__device__ inline bool __hgt(__half a, __half b) { return a > b; }
__device__ inline bool operator<=(__half a, __half b) {
  return static_cast<float>(a) <= static_cast<float>(b);
}
__device__ inline bool __hle(__half a, __half b) { return a <= b; }
__device__ inline bool operator>=(__half a, __half b) {
  return static_cast<float>(a) >= static_cast<float>(b);
}
__device__ inline bool __hge(__half a, __half b) { return a >= b; }
__device__ inline bool operator==(__half a, __half b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
__device__ inline bool __heq(__half a, __half b) { return a == b; }
__device__ inline bool operator!=(__half a, __half b) {
  return static_cast<float>(a) != static_cast<float>(b);
}
__device__ inline bool __hne(__half a, __half b) { return a != b; }
__device__ inline __half __hmax(__half a, __half b) { return a < b || a != a ? b : a; }
__device__ inline __half __hmin(__half a, __half b) { return a > b || a != a ? b : a; }
__device__ inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
__device__ inline __half2 __float2half2_rn(float a) { return {__half(a), __half(a)}; }
__device__ inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
__device__ inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
__device__ inline __half2 __half2half2(__half a) { return {a, a}; }
__device__ inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
__device__ inline float2 __half22float2(__half2 v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y)};
}
__device__ inline __half __low2half(__half2 v) { return v.x; }
__device__ inline __half __high2half(__half2 v) { return v.y; }
__device__ inline float __low2float(__half2 v) { return static_cast<float>(v.x); }
__device__ inline float __high2float(__half2 v) { return static_cast<float>(v.y); }

struct __nv_bfloat16 {
  std::uint16_t bits;

  __nv_bfloat16() = default;
  __device__ inline __nv_bfloat16(float value) : bits(cuda_emulator::f32_to_bf16(value)) {}
  __device__ inline __nv_bfloat16(double value) : __nv_bfloat16(static_cast<float>(value)) {}
  __device__ inline __nv_bfloat16(int value) : __nv_bfloat16(static_cast<float>(value)) {}
  __device__ inline operator float() const { return cuda_emulator::bf16_to_f32(bits); }
};

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

__device__ inline float __bfloat162float(__nv_bfloat16 a) { return static_cast<float>(a); }
__device__ inline __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
__device__ inline __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
__device__ inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  a.bits = cuda_emulator::fma_bf16(a.bits, b.bits, c.bits);
  return a;
}
__device__ inline __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) + static_cast<float>(b));
}
__device__ inline __nv_bfloat16& operator+=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a + b; }
__device__ inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b) { return a + b; }
__device__ inline __nv_bfloat162 operator+(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.x + b.x, a.y + b.y};
}
__device__ inline __nv_bfloat162 __hadd2(__nv_bfloat162 a, __nv_bfloat162 b) { return a + b; }
__device__ inline __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) - static_cast<float>(b));
}
__device__ inline __nv_bfloat16& operator-=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a - b; }
__device__ inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b) { return a - b; }
__device__ inline __nv_bfloat162 operator-(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.x - b.x, a.y - b.y};
}
__device__ inline __nv_bfloat162 __hsub2(__nv_bfloat162 a, __nv_bfloat162 b) { return a - b; }
__device__ inline __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) * static_cast<float>(b));
}
__device__ inline __nv_bfloat16& operator*=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a * b; }
__device__ inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b) { return a * b; }
__device__ inline __nv_bfloat162 operator*(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.x * b.x, a.y * b.y};
}
__device__ inline __nv_bfloat162 __hmul2(__nv_bfloat162 a, __nv_bfloat162 b) { return a * b; }
__device__ inline __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __nv_bfloat16(static_cast<float>(a) / static_cast<float>(b));
}
__device__ inline __nv_bfloat16& operator/=(__nv_bfloat16& a, __nv_bfloat16 b) { return a = a / b; }
__device__ inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b) { return a / b; }
__device__ inline __nv_bfloat162 operator/(__nv_bfloat162 a, __nv_bfloat162 b) {
  return {a.x / b.x, a.y / b.y};
}
__device__ inline __nv_bfloat162 __h2div(__nv_bfloat162 a, __nv_bfloat162 b) { return a / b; }
__device__ inline __nv_bfloat16 operator-(__nv_bfloat16 a) {
  return __nv_bfloat16(-static_cast<float>(a));
}
__device__ inline bool operator<(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) < static_cast<float>(b);
}
__device__ inline bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b) { return a < b; }
__device__ inline bool operator>(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) > static_cast<float>(b);
}
__device__ inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b) { return a > b; }
__device__ inline bool operator<=(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) <= static_cast<float>(b);
}
__device__ inline bool __hle(__nv_bfloat16 a, __nv_bfloat16 b) { return a <= b; }
__device__ inline bool operator>=(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) >= static_cast<float>(b);
}
__device__ inline bool __hge(__nv_bfloat16 a, __nv_bfloat16 b) { return a >= b; }
__device__ inline bool operator==(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) == static_cast<float>(b);
}
__device__ inline bool __heq(__nv_bfloat16 a, __nv_bfloat16 b) { return a == b; }
__device__ inline bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) {
  return static_cast<float>(a) != static_cast<float>(b);
}
__device__ inline bool __hne(__nv_bfloat16 a, __nv_bfloat16 b) { return a != b; }
__device__ inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  return a < b || a != a ? b : a;
}
__device__ inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  return a > b || a != a ? b : a;
}
__device__ inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)};
}
__device__ inline __nv_bfloat162 __float2bfloat162_rn(float a) {
  return {__nv_bfloat16(a), __nv_bfloat16(a)};
}
__device__ inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
__device__ inline __nv_bfloat162 __float22bfloat162_rn(float2 v) {
  return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)};
}
__device__ inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return {a, a}; }
__device__ inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) {
  return {x, y};
}
__device__ inline float2 __bfloat1622float2(__nv_bfloat162 v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y)};
}
__device__ inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
__device__ inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
__device__ inline float __low2float(__nv_bfloat162 v) { return static_cast<float>(v.x); }
__device__ inline float __high2float(__nv_bfloat162 v) { return static_cast<float>(v.y); }

using half = __half;
using half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
