#if !defined(__aarch64__)
#define STAGECRAFT_ISA portable
#include "operators/kernels/kernel_table.h"
#endif
