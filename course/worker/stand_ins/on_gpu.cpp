// For the programs in course/mistakes/11-cuda. Each of these programs defines one or more of the
// three functions. The functions that it does not define are the ones here.
#include "operators/on_gpu.h"

namespace stagecraft {

[[gnu::weak]] void rms_norm_on_gpu(const float*, const float*, float, float*, int, int) {
  NOT_IMPLEMENTED("rms_norm_on_gpu");
}

[[gnu::weak]] void matmul_transb_on_gpu(const float*, const float*, float*, int, int, int) {
  NOT_IMPLEMENTED("matmul_transb_on_gpu");
}

[[gnu::weak]] void attention_on_gpu(const float*, const float*, const float*, float*, int, int, int,
                                    int, float) {
  NOT_IMPLEMENTED("attention_on_gpu");
}

}  // namespace stagecraft
