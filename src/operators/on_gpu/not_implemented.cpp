#include "base/not_implemented.h"

#include "operators/on_gpu.h"

namespace stagecraft {

void NOT_IMPLEMENTED(const char* what) { NOT_IMPLEMENTED(std::string(what)); }

}  // namespace stagecraft
