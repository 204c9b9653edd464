#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "checkpoint/matrix_parts.h"
#include "checkpoint/quantization.h"

namespace stagecraft {

// A matrix [outputs, inputs] of integers. In each output, the integers of a group of inputs share a
// scale and a zero. Number (o, k) of the matrix is q(o, k) * the scale of its group.
struct ScaledIntegers {
  std::size_t outputs = 0, inputs = 0, n_groups = 0;
  std::vector<std::size_t> group_of;  // [inputs]
  std::vector<std::int8_t> zeros;     // [outputs, n_groups]
  std::vector<float> scales;          // [outputs, n_groups]
  std::vector<std::int8_t> q;         // [outputs, inputs]: stored integer - zero

  // The index into zeros and scales.
  std::size_t scale_index(std::size_t output, std::size_t input) const {
    return output * n_groups + group_of[input];
  }
  // The narrowest of Q4_0, Q8_0 and F32 that holds all numbers exactly.
  DType narrowest_type() const;
  // The bytes of the matrix in the type that narrowest_type() returned.
  std::vector<std::byte> bytes_as(DType dtype) const;
};

// The two readers throw Error naming the part that does not fit.
//
// GPTQ (Frantar et al. 2022) as AutoGPTQ and GPTQModel write it, and AWQ (Lin et al. 2023) as
// AutoAWQ does. The rows of the stored tensors are inputs:
//   qweight  GPTQ [inputs / 8, outputs]: a word has 8 inputs of an output
//            AWQ  [inputs, outputs / 8]: a word has 8 outputs of an input, in AWQ's order
//   qzeros   [groups, outputs / 8], in the same order of outputs
//   scales   [groups, outputs]
//   g_idx    GPTQ [inputs]: the group of each input
ScaledIntegers read_by_inputs(MatrixParts& parts, const Quantization& how);

// "pack-quantized" of compressed-tensors (github.com/vllm-project/compressed-tensors). The rows of
// the stored tensors are outputs. Each integer is stored plus 8:
//   weight_packed      [outputs, inputs / 8], the last word padded
//   weight_shape       [2]: outputs and inputs
//   weight_scale       [outputs, groups]
//   weight_zero_point  [outputs / 8, groups], the last word padded: a word has 8 outputs
//   weight_g_idx       [inputs]: the group of each input
ScaledIntegers read_by_outputs(MatrixParts& parts, const Quantization& how);

}  // namespace stagecraft
