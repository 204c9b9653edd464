#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "course/judge/gate.h"
#include "model/config.h"
#include "tensor/dtype.h"

namespace stagecraft {
struct StoredTensor;
}

namespace stagecraft::stages {

// Model folders that are written at run time, and the gate's own list of a model's parameters.

inline constexpr const char* kEmbedding = "model.embed_tokens.weight";
inline constexpr const char* kHead = "lm_head.weight";

// One parameter: its name in a file, its place in Parameters, its shape.
struct Weight {
  std::string name;   // "model.layers.1.self_attn.k_proj.weight"
  std::string place;  // "layers[1].attention.k.weight"
  std::vector<std::size_t> shape;
};
std::vector<Weight> weights_of(const Config& config);

// The names of all parameters that a model of this many layers plus one may have.
std::vector<std::string> every_name(const Config& config);

// A config of three layers whose sizes are all different.
Config fresh_config(Inputs& inputs);

struct FileTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};
std::vector<FileTensor> tensors_of(const Config& config, Inputs& inputs);

struct FileOptions {
  std::vector<DType> dtypes = {DType::F32};  // assigned in turn; 16-bit: random bits
};
// Writes the tensors into a new folder and returns it. The folder stays, because known mistakes are
// asked the same questions later.
std::filesystem::path write_model(const std::vector<FileTensor>& tensors,
                                  const FileOptions& options = {});

// The numbers of a stored F32, F16 or BF16 tensor, computed from the definition of the formats.
Expected values_of(const StoredTensor& tensor);

}  // namespace stagecraft::stages
