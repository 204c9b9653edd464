// Stands in for cuda_backend.cpp in programs without CUDA. The linker takes this file from the
// engine's archive only if the program is not linked with cuda_backend.cpp.
#include "backends/cuda/cuda_backend.h"
#include "base/error.h"

namespace stagecraft {

std::string_view cuda_backend_name() { return ""; }

std::unique_ptr<Backend> make_cuda_backend(const Plan&, const Checkpoint&, KvType) {
  throw Error("backend: expected cpu or textbook, found cuda: this program was built without CUDA");
}

}  // namespace stagecraft
