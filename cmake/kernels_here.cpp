// Prints the instruction set that the program would choose on this machine. kernels.cmake compiles
// and runs it.
#include <cstdio>

#include "operators/kernels/instruction_sets.cpp"

int main() {
  const char* best = "";
#define KERNELS(isa, features) \
  if (stagecraft::can_run(features) && !stagecraft::is_slower_here(#isa)) best = #isa;
#include "instruction_sets.inc"
  std::puts(best);
}
