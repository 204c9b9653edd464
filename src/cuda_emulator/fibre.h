// A stack with a thread of control on it, to which the CPU switches and from which it comes back.
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

// Prepares a fibre that begins in `entry`, which must never return. `low` is the stack's lowest
// address.
void prepare(Fibre& fibre, void* low, std::size_t bytes, void (*entry)());
// Goes to `to`, and returns when something switches back to `from`.
void switch_fibre(Fibre& from, Fibre& to);

}  // namespace cuda_emulator
