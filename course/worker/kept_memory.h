#pragma once

#include <cstdlib>  // which says whether this is glibc

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace stagecraft::stages {

// From now on, what this process frees stays with it. By default glibc gives every large block back
// to the kernel and takes it anew for the next call: half of a gate's time went into that.
inline void keep_freed_memory() {
#if defined(__GLIBC__)
  constexpr int kNever = 1 << 30;
  ::mallopt(M_MMAP_THRESHOLD, kNever);
  ::mallopt(M_TRIM_THRESHOLD, kNever);
#endif
}

}  // namespace stagecraft::stages
