#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/matrix_parts.h"
#include "checkpoint/quantization.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// The matrices that a folder's files store in several tensors each: the numbers, their scales, the
// integers that stand for 0, and the group of each input. Here each matrix is one tensor
// "NAME.weight", in the narrowest type that holds exactly what the parts stand for:
//
//   (q - zero) * scale    q of 4 bits     Q4_0, where all q - zero are from -8 to 7
//                                         Q8_0, where another one is
//                                         F32, where neither holds it: 32 inputs of a block have
//                                         different scales, or a scale is not exactly an f16
//   number * scale        fp8             F32
//   number * scale        MXFP4           BF16
//
// F32 has the product as f32 arithmetic gives it. MXFP4 stores all experts of a layer together: the
// tensor has the name without "weight", and inputs before outputs, as unquantised files have it.
class ComposedWeights : public WeightFile {
 public:
  // Takes the parts out of `tensors`. Throws Error that begins with `where` and names the tensor
  // that is missing or does not fit the others. Also where there is no such matrix at all.
  ComposedWeights(const Quantization& how, TensorMap& tensors, const std::string& where);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override {}  // all are copies
  // "GPTQ int4, a scale for each 128 inputs; read as Q4_0"
  std::string text() const;

 private:
  Quantization how_;
  std::vector<StoredTensor> tensors_;
};

}  // namespace stagecraft
