#if defined(__x86_64__)
#define STAGECRAFT_ISA avx512_vnni
#include "operators/kernels/kernel_table.h"
#endif
