#if defined(__aarch64__)
#define STAGECRAFT_ISA neon_dotprod
#include "operators/kernels/kernel_table.h"
#endif
