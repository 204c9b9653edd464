// The vector types of CUDA, with CUDA's alignment: one access moves a whole vector, and its address
// must be aligned.
#pragma once

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

#define CUDA_EMULATOR_VECTORS(Name, Element, Size)                                                \
  struct Name##1 {                                                                                \
    Element x;                                                                                    \
  };                                                                                              \
  __device__ inline Name##1 make_##Name##1(Element x) { return {x}; }                             \
  struct alignas(2 * Size) Name##2 {                                                              \
    Element x, y;                                                                                 \
  };                                                                                              \
  struct Name##3 {                                                                                \
    Element x, y, z;                                                                              \
  };                                                                                              \
  struct alignas(4 * Size > 16 ? 16 : 4 * Size) Name##4 {                                         \
    Element x, y, z, w;                                                                           \
  };                                                                                              \
  __device__ inline Name##2 make_##Name##2(Element x, Element y) { return {x, y}; }               \
  __device__ inline Name##3 make_##Name##3(Element x, Element y, Element z) { return {x, y, z}; } \
  __device__ inline Name##4 make_##Name##4(Element x, Element y, Element z, Element w) {          \
    return {x, y, z, w};                                                                          \
  }
CUDA_EMULATOR_VECTORS(char, signed char, 1)
CUDA_EMULATOR_VECTORS(uchar, unsigned char, 1)
CUDA_EMULATOR_VECTORS(short, short, 2)
CUDA_EMULATOR_VECTORS(ushort, unsigned short, 2)
CUDA_EMULATOR_VECTORS(int, int, 4)
CUDA_EMULATOR_VECTORS(float, float, 4)
CUDA_EMULATOR_VECTORS(long, long, 8)
CUDA_EMULATOR_VECTORS(ulong, unsigned long, 8)
CUDA_EMULATOR_VECTORS(longlong, long long, 8)
CUDA_EMULATOR_VECTORS(ulonglong, unsigned long long, 8)
CUDA_EMULATOR_VECTORS(double, double, 8)
#undef CUDA_EMULATOR_VECTORS

struct uint1 {
  unsigned x;
};
__device__ inline uint1 make_uint1(unsigned x) { return {x}; }
struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
__device__ inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
__device__ inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
__device__ inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
