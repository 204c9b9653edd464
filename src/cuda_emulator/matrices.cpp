// The matrix products of a warp (emulated/wmma.h, include/warp_matrix.h). All lanes come to the
// same call. Then each lane reads or writes its part of a tile, or one lane computes the product
// for all.
#include <bit>
#include <cstring>

#include "collectives.h"
#include "emulated/wmma.h"
#include "warp_matrix.h"

namespace cuda_emulator {

namespace {

constexpr unsigned side = 16, own = 8;  // numbers per row of a tile; per lane
constexpr unsigned piece = 16;          // bytes that a lane moves at once
constexpr unsigned tile_alignment = 32;

// The arguments of one lane of a product. The lane that comes last calls multiply for all lanes.
struct Lane {
  void (*multiply)(Thread* const* lanes);
};

struct Product : Lane {
  float* d;
  HalfTile a, b;
  const float* c;
};

void meet(Collective kind, std::uint64_t value, unsigned stride, Address pc) {
  const std::uint64_t met =
      collective(kind, 0xffffffffu, value, static_cast<int>(stride), warp_size, pc);
  const auto lanes = static_cast<std::uint32_t>(met);
  if (lanes != 0xffffffffu) {
    finding("inactive lane", pc, 0,
            describe(*current) + " makes this call with " + std::to_string(std::popcount(lanes)) +
                " lanes of its warp; a fragment needs all 32");
    abort_launch();
  }
  if (met >> 32 == 0) {
    finding("fragment", pc, 0,
            describe(*current) +
                " makes this call with lanes of its warp that pass another address or stride, or "
                "that call from another place");
    abort_launch();
  }
}

void meet_for_memory(const void* memory, unsigned number_bytes, unsigned stride, Address pc) {
  const unsigned numbers = piece / number_bytes;
  if (stride % numbers != 0) {
    finding("fragment", pc, 0,
            describe(*current) + " passes the stride " + std::to_string(stride) +
                "; expected a multiple of " + std::to_string(numbers));
    abort_launch();
  }
  if (Address(memory) % tile_alignment != 0) {
    finding("misaligned", pc, 0,
            describe(*current) + " passes the address of a fragment that is not a multiple of " +
                std::to_string(tile_alignment));
    abort_launch();
  }
  meet(Collective::fragment, Address(memory), stride, pc);
}

// This lane has half of a line (row or column) of a tile: the line, and where the half begins.
unsigned line() { return current->lane() / 2; }
unsigned begin() { return current->lane() % 2 * own; }

// Calls move(number of the lane, place in memory, how many) for all pieces.
template <class Move>
void for_floats(unsigned stride, bool by_columns, Move move) {
  if (by_columns) {
    for (unsigned i = 0; i < own; ++i) move(i, std::size_t{begin() + i} * stride + line(), 1u);
  } else {
    for (unsigned i = 0; i < own; i += 4) move(i, std::size_t{line()} * stride + begin() + i, 4u);
  }
}

using Numbers = float[side][side];

void gather(Thread* const* lanes, HalfTile Product::*which, Numbers& numbers) {
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const HalfTile& tile = reinterpret_cast<const Product*>(lanes[lane]->value)->*which;
    std::uint16_t bits[own];
    std::memcpy(bits, tile.numbers, sizeof bits);
    for (unsigned i = 0; i < own; ++i) {
      const unsigned first = lane / 2, second = lane % 2 * own + i;
      const float value = tile.is_bf16 ? bf16_to_f32(bits[i]) : f16_to_f32(bits[i]);
      (tile.by_columns ? numbers[second][first] : numbers[first][second]) = value;
    }
  }
}

// The product of two halves is exact in f32, so each step rounds once.
void multiply_fragments(Thread* const* lanes) {
  Numbers a, b;
  gather(lanes, &Product::a, a);
  gather(lanes, &Product::b, b);
  for (unsigned row = 0; row < side; ++row) {
    const auto& first = *reinterpret_cast<const Product*>(lanes[2 * row]->value);
    const auto& second = *reinterpret_cast<const Product*>(lanes[2 * row + 1]->value);
    float sums[side];
    std::memcpy(sums, first.c, own * sizeof(float));
    std::memcpy(sums + own, second.c, own * sizeof(float));
    for (unsigned k = 0; k < side; ++k)
      for (unsigned col = 0; col < side; ++col) sums[col] += a[row][k] * b[k][col];
    std::memcpy(first.d, sums, own * sizeof(float));
    std::memcpy(second.d, sums + own, own * sizeof(float));
  }
}

// The two f16 or bf16 numbers of a register.
struct Two {
  float first, second;
};
Two halves(unsigned bits, bool is_bf16) {
  const auto low = static_cast<std::uint16_t>(bits), high = static_cast<std::uint16_t>(bits >> 16);
  if (is_bf16) return {bf16_to_f32(low), bf16_to_f32(high)};
  return {f16_to_f32(low), f16_to_f32(high)};
}

struct RegisterProduct : Lane {
  float* d;
  const unsigned *a, *b;
  bool is_bf16;
};

// warp_matrix.h says which lane holds which numbers.
void multiply_lanes(Thread* const* lanes) {
  constexpr unsigned columns = 8, half = 8;
  float a[side][side], b[side][columns];
  const auto of = [&](unsigned lane) -> const RegisterProduct& {
    return *reinterpret_cast<const RegisterProduct*>(lanes[lane]->value);
  };
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const RegisterProduct& own = of(lane);
    const unsigned g = lane / 4, t = 2 * (lane % 4);
    for (unsigned i = 0; i < 4; ++i) {
      const Two two = halves(own.a[i], own.is_bf16);
      const unsigned row = g + i % 2 * half, column = t + i / 2 * half;
      a[row][column] = two.first, a[row][column + 1] = two.second;
    }
    for (unsigned i = 0; i < 2; ++i) {
      const Two two = halves(own.b[i], own.is_bf16);
      b[t + i * half][g] = two.first, b[t + i * half + 1][g] = two.second;
    }
  }
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    float* d = of(lane).d;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * half, column = 2 * (lane % 4) + i % 2;
      for (unsigned k = 0; k < side; ++k) d[i] += a[row][k] * b[k][column];
    }
  }
}

}  // namespace

// If the lanes come for different kinds of products, nothing is computed: all_alike() reports it.
void multiply_for(Thread* const* lanes) {
  const auto of = [&](unsigned lane) {
    return reinterpret_cast<const Lane*>(lanes[lane]->value)->multiply;
  };
  for (unsigned lane = 1; lane < warp_size; ++lane)
    if (of(lane) != of(0)) return;
  of(0)(lanes);
}

void load_halves(void* tile, const void* from, unsigned stride) {
  const Address pc = PC;
  meet_for_memory(from, 2, stride, pc);
  const char* place = static_cast<const char*>(from) + 2 * (std::size_t{line()} * stride + begin());
  access_for_caller(Address(place), piece, piece, Kind::whole_read, pc);
  access_for_caller(Address(tile), piece, 2, Kind::write, pc);
  std::memcpy(tile, place, piece);
}

void load_floats(float* tile, const float* from, unsigned stride, bool by_columns) {
  const Address pc = PC;
  meet_for_memory(from, 4, stride, pc);
  for_floats(stride, by_columns, [&](unsigned i, std::size_t place, unsigned count) {
    access_for_caller(Address(from + place), 4 * count, 4 * count, Kind::whole_read, pc);
    access_for_caller(Address(tile + i), 4 * count, 4, Kind::write, pc);
    std::memcpy(tile + i, from + place, 4 * count);
  });
}

void store_floats(float* to, const float* tile, unsigned stride, bool by_columns) {
  const Address pc = PC;
  meet_for_memory(to, 4, stride, pc);
  for_floats(stride, by_columns, [&](unsigned i, std::size_t place, unsigned count) {
    access_for_caller(Address(tile + i), 4 * count, 4, Kind::whole_read, pc);
    access_for_caller(Address(to + place), 4 * count, 4 * count, Kind::write, pc);
    std::memcpy(to + place, tile + i, 4 * count);
  });
}

void multiply_tiles(float* d, HalfTile a, HalfTile b, const float* c) {
  const Address pc = PC;
  access_for_caller(Address(a.numbers), piece, 2, Kind::whole_read, pc);
  access_for_caller(Address(b.numbers), piece, 2, Kind::whole_read, pc);
  for (unsigned i = 0; i < own; i += 4) {
    access_for_caller(Address(c + i), piece, 4, Kind::whole_read, pc);
    access_for_caller(Address(d + i), piece, 4, Kind::write, pc);
  }
  const Product product{{multiply_fragments}, d, a, b, c};
  meet(Collective::multiply, Address(&product), 0, pc);
}

void multiply_registers(float* d, const unsigned* a, const unsigned* b, bool is_bf16) {
  const Address pc = PC;
  access_for_caller(Address(a), 16, 4, Kind::whole_read, pc);
  access_for_caller(Address(b), 8, 4, Kind::whole_read, pc);
  access_for_caller(Address(d), 16, 4, Kind::whole_read, pc);
  access_for_caller(Address(d), 16, 4, Kind::write, pc);
  const RegisterProduct product{{multiply_lanes}, d, a, b, is_bf16};
  meet(Collective::multiply, Address(&product), 0, pc);
}

}  // namespace cuda_emulator
