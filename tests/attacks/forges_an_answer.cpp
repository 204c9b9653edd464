// Attack: writes the response itself, and reports success.
// Ends as: wrong
#include "attack.h"

static void attack() {}

[[gnu::constructor]] static void forge(int, char** argv, char**) {
  const char text[] =
      R"({"__metadata__":{"status":"0","message":"passed","overrun":"","overrun_side":"","changed_input":""}})";
  const unsigned long long length = sizeof text - 1;
  const int file = open(argv[2], O_WRONLY | O_TRUNC);
  if (write(file, &length, sizeof length) > 0 && write(file, text, length) > 0) _exit(0);
}
