#if defined(__aarch64__)
#define STAGECRAFT_ISA neon_i8mm
#include "operators/kernels/kernel_table.h"
#endif
