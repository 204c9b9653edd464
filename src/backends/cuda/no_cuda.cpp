// The CUDA backend of programs that have none. A linker takes this file out of the engine's archive
// only if nobody has brought cuda_backend.cpp.
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"

namespace stagecraft {

std::string_view cuda_backend_name() { return ""; }

std::unique_ptr<Backend> make_cuda_backend(const Plan&, const Checkpoint&, const EngineOptions&) {
  throw Error("backend: expected cpu or textbook, found cuda, which this program has not");
}

}  // namespace stagecraft
