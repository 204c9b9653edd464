// One instruction of the tensor cores: mma.m16n8k16 of PTX (CUDA's manual "Parallel Thread
// Execution ISA"). CUDA's headers have no function for it. A warp multiplies
//
//     D [16][8]  +=  A [16][16] * B [16][8]
//
// A and B are halves (f16 or bf16), D is f32. The numbers are in the registers of the lanes, two
// halves per register, the first one in the lower half. With g = lane / 4 and t = lane % 4:
//
//     a[0], a[1]  row g, row g + 8 of A, columns 2t and 2t + 1        b[0]  rows 2t and 2t + 1,
//     a[2], a[3]  the same rows, columns 2t + 8 and 2t + 9                  column g of B
//     d[0], d[1]  row g of D, columns 2t and 2t + 1                   b[1]  rows 2t + 8 and 2t + 9,
//     d[2], d[3]  row g + 8, the same columns                               column g
#pragma once

#include "cuda_emulator.h"

#ifdef __CUDACC__
__device__ inline void multiply_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ inline void multiply_bf16(float (&d)[4], const unsigned (&a)[4],
                                     const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
namespace cuda_emulator {
// d, a and b: the registers of the calling lane.
void multiply_registers(float* d, const unsigned* a, const unsigned* b, bool is_bf16);
}  // namespace cuda_emulator
__device__ inline void multiply_f16(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  cuda_emulator::multiply_registers(d, a, b, false);
}
__device__ inline void multiply_bf16(float (&d)[4], const unsigned (&a)[4],
                                     const unsigned (&b)[2]) {
  cuda_emulator::multiply_registers(d, a, b, true);
}
#endif
