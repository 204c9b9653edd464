#if defined(__x86_64__)
#define STAGECRAFT_ISA avx512_bf16
#include "operators/kernels/kernel_table.h"
#endif
