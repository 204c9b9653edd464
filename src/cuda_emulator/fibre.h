// A fibre: a stack and registers of its own. A program switches from one fibre to another.
#pragma once

#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace cuda_emulator {

struct Fibre {
#ifdef __x86_64__
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

// Prepares a fibre that will start in `entry`, which must never return. `low` is the lowest address
// of its stack, which must outlive the fibre.
void prepare(Fibre& fibre, void* low, std::size_t bytes, void (*entry)());
// Continues `to`. Returns when something switches back to `from`.
void switch_fibre(Fibre& from, Fibre& to);

}  // namespace cuda_emulator
