// Attack: lets the engine run the model, whose functions it calls by names with a version.
// Stage: 7
// Refused for: @@X
// Would earn: 0
#include "model/forward.h"

// The linker takes the name "x@@X", the version X of x, for x, but nm reports "x@@X", which is on
// no list. The stubs are weak: the program has the engine's functions, and the linker takes these.
#define STUB(label, name) \
  asm(".text\n.weak \"" name "@@X\"\n\"" name "@@X\": ret\n" label ": jmp \"" name "@@X\"\n")
STUB("open_engine_", "_ZN10stagecraft6Engine4openERKNS_11ModelSourceERKNS_13EngineOptionsE");
STUB("new_session_", "_ZN10stagecraft7SessionC1ERNS_6EngineEm");
void open_engine(void* result, const void* source, const void* options) asm("open_engine_");
void new_session(void* self, void* engine, std::size_t context) asm("new_session_");

namespace stagecraft {

void forward(const Model&, std::span<const TokenId>, KvCache&, Workspace&, MatrixView<float>) {
  open_engine(nullptr, nullptr, nullptr);
  new_session(nullptr, nullptr, 8);
}

}  // namespace stagecraft
