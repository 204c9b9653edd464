#if defined(__aarch64__)
#define STAGECRAFT_ISA neon
#include "operators/kernels/kernel_table.h"
#endif
