// Attack: calls a destructor of ours, which links the engine and its kernels into the program.
// Stage: 2
// Refused for: stage 2 may not call Scheduler::~Scheduler
// Would earn: 0
#include "operators/rms_norm.h"

namespace stagecraft {

class Scheduler {
 public:
  ~Scheduler();
};

namespace {

[[gnu::used]] void bring(Scheduler* engine) { engine->~Scheduler(); }

}  // namespace

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
