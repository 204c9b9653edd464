// Attack: an answer in which each text is as long as a header may be, to make endless reports.
// Ends as: no_answer
#include <string>

#include "attack.h"

static void attack() {}

[[gnu::constructor]] static void forge(int, char** argv, char**) {
  std::string head = R"({"__metadata__":{"status":"2")";
  for (const char* name : {"message", "overrun", "overrun_side", "changed_input"}) {
    head += ",\"" + std::string(name) + "\":\"" + std::string(200'000, 'x') + "\"";
  }
  head += "}}";
  const unsigned long long length = head.size();
  const int file = open(argv[2], O_WRONLY | O_TRUNC);
  if (write(file, &length, sizeof length) > 0 && write(file, head.data(), length) > 0) _exit(0);
}
