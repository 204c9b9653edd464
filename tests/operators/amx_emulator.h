#pragma once

// The AMX instructions in C++, so that kernels/amx_tiles.h can be tested on a processor that has
// AVX-512 but no AMX. If STAGECRAFT_EMULATE_AMX is set (./stage selftest --amx), CMake includes
// this file before the source of that table. The arithmetic is that of the Intel 64 and IA-32
// Architectures Software Developer's Manual, volume 2: LDTILECFG, TILELOADD, TILELOADDT1, TILEZERO,
// TILESTORED, TDPBF16PS, TDPBSSD. If the processor would raise an exception, this code ends the
// program.

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stagecraft_amx {

struct Register {
  std::size_t n_rows = 0, row_bytes = 0;
  alignas(64) unsigned char bytes[16][64] = {};

  template <typename T>
  T at(std::size_t row, std::size_t i) const {
    T value;
    std::memcpy(&value, bytes[row] + i * sizeof(T), sizeof value);
    return value;
  }

  template <typename T>
  void set(std::size_t row, std::size_t i, T value) {
    std::memcpy(bytes[row] + i * sizeof(T), &value, sizeof value);
  }
};

inline thread_local Register registers[8];

inline void expect(bool holds, const char* instruction, const char* expected) {
  if (holds) return;
  std::fprintf(stderr, "%s: expected %s\n", instruction, expected);
  std::abort();
}

// shapes: 64 bytes, the TileShapes of amx_tiles.h.
inline void load_shapes(const void* shapes) {
  const auto* const bytes = static_cast<const unsigned char*>(shapes);
  expect(bytes[0] == 1, "LDTILECFG", "palette 1");
  for (int tile = 0; tile < 8; ++tile) {
    Register& to = registers[tile];
    std::uint16_t row_bytes;
    std::memcpy(&row_bytes, bytes + 16 + 2 * tile, sizeof row_bytes);
    to = Register{};
    to.n_rows = bytes[48 + tile];
    to.row_bytes = row_bytes;
    expect(to.n_rows <= 16 && row_bytes <= 64 && (to.n_rows == 0) == (row_bytes == 0), "LDTILECFG",
           "up to 16 rows of up to 64 bytes");
  }
}

inline void release() {
  for (Register& one : registers) one = Register{};
}

// Returns a register; ends the program if it has no shape.
inline Register& shaped(int tile, const char* instruction) {
  expect(registers[tile].n_rows != 0, instruction, "a tile that has a shape");
  return registers[tile];
}

inline void load(int tile, const void* from, std::size_t stride) {
  Register& to = shaped(tile, "TILELOADD");
  for (std::size_t r = 0; r < to.n_rows; ++r) {
    std::memcpy(to.bytes[r], static_cast<const char*>(from) + r * stride, to.row_bytes);
  }
}

inline void zero(int tile) {
  Register& to = shaped(tile, "TILEZERO");
  std::memset(to.bytes, 0, sizeof to.bytes);
}

inline void store(int tile, void* to, std::size_t stride) {
  const Register& from = shaped(tile, "TILESTORED");
  for (std::size_t r = 0; r < from.n_rows; ++r) {
    std::memcpy(static_cast<char*>(to) + r * stride, from.bytes[r], from.row_bytes);
  }
}

// Replaces each number of `sums` by dot(number, rows, its row, weights, its column).
template <typename T, class Dot>
void multiply(const char* instruction, int sums, int rows, int weights, Dot dot) {
  Register& c = shaped(sums, instruction);
  const Register &a = shaped(rows, instruction), &b = shaped(weights, instruction);
  expect(c.n_rows == a.n_rows && c.row_bytes == b.row_bytes && a.row_bytes == 4 * b.n_rows,
         instruction, "shapes that fit each other");
  for (std::size_t m = 0; m < c.n_rows; ++m) {
    for (std::size_t n = 0; n < c.row_bytes / sizeof(T); ++n) {
      c.set(m, n, dot(c.at<T>(m, n), a, m, b, n));
    }
  }
}

inline float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? 0.0F * x : x; }

inline float bf16(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return flushed(value);
}

// Sums the even and the odd inputs separately. Subnormal inputs and results are 0.
inline float dot_bf16(float sum, const Register& a, std::size_t m, const Register& b,
                      std::size_t n) {
  float part[2] = {};
  for (std::size_t k = 0; k < b.n_rows; ++k) {
    for (std::size_t i = 0; i < 2; ++i) {
      part[i] = flushed(std::fma(bf16(a.at<std::uint16_t>(m, 2 * k + i)),
                                 bf16(b.at<std::uint16_t>(k, 2 * n + i)), part[i]));
    }
  }
  return flushed(flushed(sum) + flushed(part[0] + part[1]));
}

inline std::int32_t dot_int8(std::int32_t sum, const Register& a, std::size_t m, const Register& b,
                             std::size_t n) {
  for (std::size_t k = 0; k < b.n_rows; ++k) {
    for (std::size_t i = 0; i < 4; ++i) {
      sum += a.at<std::int8_t>(m, 4 * k + i) * b.at<std::int8_t>(k, 4 * n + i);
    }
  }
  return sum;
}

}  // namespace stagecraft_amx

// The macros and functions that a compiler has if it may use AMX.
#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_zero
#undef _tile_stored
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#define __AMX_BF16__ 1
#define _tile_loadconfig(shapes) stagecraft_amx::load_shapes(shapes)
#define _tile_release() stagecraft_amx::release()
#define _tile_loadd(tile, from, stride) stagecraft_amx::load(tile, from, stride)
#define _tile_stream_loadd(tile, from, stride) stagecraft_amx::load(tile, from, stride)
#define _tile_zero(tile) stagecraft_amx::zero(tile)
#define _tile_stored(tile, to, stride) stagecraft_amx::store(tile, to, stride)
#define _tile_dpbf16ps(c, a, b) \
  stagecraft_amx::multiply<float>("TDPBF16PS", c, a, b, stagecraft_amx::dot_bf16)
#define _tile_dpbssd(c, a, b) \
  stagecraft_amx::multiply<std::int32_t>("TDPBSSD", c, a, b, stagecraft_amx::dot_int8)
