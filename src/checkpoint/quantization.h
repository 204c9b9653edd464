#pragma once

#include <optional>
#include <string>

#include "base/json.h"

namespace stagecraft {

// "quantization_config" of a config.json: how the files of a folder store matrices in fewer bits.
struct Quantization {
  enum class Method { Fp8, Mxfp4, Gptq, Awq, CompressedTensors };
  Method method = Method::Fp8;
  // For 4-bit integers (Gptq, Awq, CompressedTensors). A zero is the integer that stands for 0.
  std::size_t group_size = 0;   // inputs that share a scale; 0: all inputs of an output
  bool has_zeros = true;        // the file has a zero for each group; false: every zero is 8
  bool zeros_less_one = false;  // a word of eight zeros is stored minus 0x11111111
  bool act_order = false;       // groups are not consecutive: the file has the group of each input
  // For fp8: the size of the blocks that share a scale; 0: one scale for the whole matrix.
  std::size_t block_rows = 0, block_columns = 0;

  // "GPTQ int4, one scale per 128 inputs"
  std::string text() const;
};

// Reads "quantization_config" of a config.json; nullopt if it has none. `where` names the file.
// Throws Error naming the field if it asks for a format that this engine cannot read.
std::optional<Quantization> parse_quantization(JsonNode config, const std::string& where);

}  // namespace stagecraft
