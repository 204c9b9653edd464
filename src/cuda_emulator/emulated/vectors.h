// The vector types of CUDA, with CUDA's alignment: one access moves a whole vector, and its address
// must be aligned.
#pragma once

// g++ copies a vector with one access. Clang calls a function that does not know the alignment. So
// for Clang, vectors have functions that copy them, in pieces of 16 bytes or, if smaller, at once.
// These vectors are therefore not aggregates, and need constructors.
#ifdef __clang__
namespace cuda_emulator {
template <std::size_t bytes>
struct Piece;
#define CUDA_EMULATOR_PIECE(Type)                     \
  template <>                                         \
  struct Piece<sizeof(Type)> {                        \
    typedef Type type __attribute__((__may_alias__)); \
  };
CUDA_EMULATOR_PIECE(unsigned short)
CUDA_EMULATOR_PIECE(unsigned)
CUDA_EMULATOR_PIECE(unsigned long long)
CUDA_EMULATOR_PIECE(unsigned __int128)
#undef CUDA_EMULATOR_PIECE
}  // namespace cuda_emulator
#define CUDA_EMULATOR_COPIES(Vector)                                                          \
  Vector() = default;                                                                         \
  __device__ Vector(const Vector& from) { *this = from; }                                     \
  __device__ Vector& operator=(const Vector& from) {                                          \
    using P = typename cuda_emulator::Piece<sizeof(Vector) < 16 ? sizeof(Vector) : 16>::type; \
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof(P); ++i)                              \
      reinterpret_cast<P*>(this)[i] = reinterpret_cast<const P*>(&from)[i];                   \
    return *this;                                                                             \
  }
#define CUDA_EMULATOR_PAIR(Vector, Element) \
  CUDA_EMULATOR_COPIES(Vector)              \
  __device__ constexpr Vector(Element x, Element y = 0) : x(x), y(y) {}
#define CUDA_EMULATOR_FOUR(Vector, Element)                                           \
  CUDA_EMULATOR_COPIES(Vector)                                                        \
  __device__ constexpr Vector(Element x, Element y = 0, Element z = 0, Element w = 0) \
      : x(x), y(y), z(z), w(w) {}
#else
#define CUDA_EMULATOR_PAIR(Vector, Element)
#define CUDA_EMULATOR_FOUR(Vector, Element)
#endif

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
    CUDA_EMULATOR_PAIR(Name##2, Element)                                                          \
  };                                                                                              \
  struct Name##3 {                                                                                \
    Element x, y, z;                                                                              \
  };                                                                                              \
  struct alignas(4 * Size > 16 ? 16 : 4 * Size) Name##4 {                                         \
    Element x, y, z, w;                                                                           \
    CUDA_EMULATOR_FOUR(Name##4, Element)                                                          \
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
  CUDA_EMULATOR_PAIR(uint2, unsigned)
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
  CUDA_EMULATOR_FOUR(uint4, unsigned)
};
__device__ inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
__device__ inline uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
__device__ inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
  return {x, y, z, w};
}
