#pragma once

#include <memory>
#include <string>
#include <vector>

#include "checkpoint/matrix_parts.h"
#include "checkpoint/quantization.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

class ModelSource;

// Matrices that a folder stores in several tensors each: the numbers, their scales, the zeros (the
// integers that stand for 0), and the group of each input. This class makes one tensor
// "NAME.weight" of the parts of a matrix, in the narrowest type that holds every number exactly:
//
//   (q - zero) * scale    q of 4 bits     Q4_0, if all q - zero are from -8 to 7
//                                         Q8_0, if another q - zero occurs
//                                         F32, if the 32 inputs of a block have different scales,
//                                         or a scale is not exactly an f16
//   number * scale        fp8             F32
//   number * scale        MXFP4           BF16
//
// F32 holds the product rounded to f32. MXFP4 files store the matrices of all experts of a layer
// together. Their tensor has no ".weight" in its name and the shape [experts, inputs, outputs], as
// in unquantised files.
class ComposedWeights : public WeightFile {
 public:
  // Removes the parts from `tensors`. Throws Error that begins with `where` and names the tensor if
  // a part is missing or does not fit the others; also if there is no such matrix at all.
  ComposedWeights(const Quantization& how, TensorMap& tensors, const std::string& where);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override {}  // all are copies
  // "GPTQ int4, one scale per 128 inputs; read as Q4_0"
  const std::string& text() const { return text_; }

 private:
  std::vector<StoredTensor> tensors_;
  std::string text_;
};

// Makes them for a folder whose config.json has a "quantization_config"; nullptr if it has none.
// Throws Error as the constructor does, and if this engine cannot read the format.
std::shared_ptr<const ComposedWeights> compose_weights(const ModelSource& folder,
                                                       TensorMap& tensors,
                                                       const std::string& where);

}  // namespace stagecraft
