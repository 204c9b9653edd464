// In stage 10's worker in the place of the engine's dequantize, which would be half of the answer.
// The models that the gate asks about are not quantised.
#include "operators/dequantize.h"

#include "base/error.h"

namespace stagecraft {

void dequantize(DType dtype, std::span<const std::byte>, std::span<float>) {
  throw Error("dequantize: {}: not in this program", dtype_name(dtype));
}

}  // namespace stagecraft
