// Attack: an answer whose shape would make the judge read out of bounds.
// Ends as: wrong
#include <string>

#include "attack.h"

static void attack() {}

[[gnu::constructor]] static void forge(int, char** argv, char**) {
  std::string head =
      R"({"__metadata__":{"status":"0","message":"","overrun":"","overrun_side":"","changed_input":""})";
  for (const char* name : {"y", "y#2"}) {
    head += ",\"" + std::string(name) +
            R"(":{"dtype":"F32","shape":[0,0,0,0,0,0,0,0],"data_offsets":[0,0]})";
  }
  head += "}";
  const unsigned long long length = head.size();
  const int file = open(argv[2], O_WRONLY | O_TRUNC);
  if (write(file, &length, sizeof length) > 0 && write(file, head.data(), length) > 0) _exit(0);
}
