// Replaces the engine's convert_tensor in the worker of stage 10: that one quantises, so it would
// be half of the answer. The models in the gate's questions need no conversion.
#include "checkpoint/convert_tensor.h"

#include "base/error.h"

namespace stagecraft {

void convert_tensor(const StoredTensor& tensor, DType, const std::string& where,
                    const std::function<void(std::span<const std::byte>)>&, ThreadPool*) {
  throw Error("{}: tensor '{}': convert_tensor is not in this program", where, tensor.name);
}

}  // namespace stagecraft
