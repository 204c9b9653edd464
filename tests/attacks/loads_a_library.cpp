// Attack: loads a library of the machine, which the worker is not linked with, to do the work.
// Ends as: wrong
// Without confinement: harms
#include <dlfcn.h>

#include "attack.h"

static void attack() {
  for (const char* name : {"libz.so.1", "libcrypt.so.1", "libopenblas.so.0", "libblas.so.3"}) {
    harmed_if(dlopen(name, RTLD_NOW) != nullptr, "loaded a library");
  }
  Dl_info c{};
  dladdr(reinterpret_cast<void*>(&printf), &c);
  char path[4096] = {};
  strncpy(path, c.dli_fname, sizeof path - 64);
  char* const slash = strrchr(path, '/');
  if (slash == nullptr) return;
  strcpy(slash, "/libz.so.1");
  harmed_if(can_open(path), "read a library that is not the worker's");
  strcpy(slash, "/libc.so.6");
  harmed_if(!can_open(path), "was not given its own library");
}
