// Attack: crashes with a sanitizer's message about a file that does not exist.
// Ends as: crashed
#include <string>

#include "attack.h"

static void attack() {
  const std::string long_number(5000, '9');
  dprintf(STDOUT_FILENO,
          "==1==ERROR: AddressSanitizer: heap-use-after-free\n"
          "    #0 0x1 in f ../../stages/02-rms-norm/rms_norm.cpp:%s\n"
          "    #1 0x1 in f ../../stages/02-rms-norm/secret.cpp:3\n"
          "    #2 0x1 in f ../../stages/02-rms-norm/rms_norm.cpp:0\n",
          long_number.c_str());
  abort();
}
