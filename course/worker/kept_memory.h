#pragma once

#include <cstdlib>  // defines __GLIBC__

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace stagecraft::stages {

// From now on the process keeps the memory that it frees. By default glibc returns every large
// block to the kernel and asks for it again at the next call. That took half of a gate's time.
inline void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kNever = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
#endif
}

}  // namespace stagecraft::stages
