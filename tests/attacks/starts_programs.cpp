// Attack: becomes another program: a compiler, or an interpreter with more abilities.
// Ends as: wrong
#include "attack.h"

static void attack() {
  for (const char* program : {"/bin/sh", "/usr/bin/python3", "/usr/bin/env", "/usr/bin/c++"}) {
    execl(program, program, "-c", "echo harmed: started a program", nullptr);
  }
}
