#include "fibre.h"

namespace cuda_emulator {

#ifdef __x86_64__
// swapcontext calls the system to change the signal mask, which takes twenty times as long as the
// switch itself. This function saves and restores only the registers that a called function must
// keep.
extern "C" void cuda_emulator_switch(void** from, void* to);
asm(R"(
.text
.globl cuda_emulator_switch
.type cuda_emulator_switch, @function
cuda_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cuda_emulator_switch, .-cuda_emulator_switch
)");

void prepare(Fibre& fibre, void* low, std::size_t bytes, void (*entry)()) {
  auto** top = reinterpret_cast<void**>(static_cast<char*>(low) + bytes);  // divisible by 16
  *--top = nullptr;                         // in place of the return address of `entry`
  *--top = reinterpret_cast<void*>(entry);  // `ret` goes here; then the stack is as after a call
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fibre.stack_pointer = top;
}

void switch_fibre(Fibre& from, Fibre& to) {
  cuda_emulator_switch(&from.stack_pointer, to.stack_pointer);
}

#else

void prepare(Fibre& fibre, void* low, std::size_t bytes, void (*entry)()) {
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = low;
  fibre.context.uc_stack.ss_size = bytes;
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, entry, 0);
}

void switch_fibre(Fibre& from, Fibre& to) { swapcontext(&from.context, &to.context); }

#endif

}  // namespace cuda_emulator
