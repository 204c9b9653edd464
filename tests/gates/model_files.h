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

// Model folders written on the spot, and the gate's own list of what a model is made of.

inline constexpr const char* kEmbedding = "model.embed_tokens.weight";
inline constexpr const char* kHead = "lm_head.weight";

// One parameter: its name in a file, its place in Parameters, its shape.
struct Weight {
  std::string name;   // "model.layers.1.self_attn.k_proj.weight"
  std::string place;  // "layers[1].attention.k.weight"
  std::vector<std::size_t> shape;
};
std::vector<Weight> weights_of(const Config& config);

// The names of all that a model of that many layers, and one more, may hold.
std::vector<std::string> every_name(const Config& config);

// A config of three layers, whose sizes are all different.
Config fresh_config(Inputs& inputs);

struct FileTensor {
  std::string name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};
std::vector<FileTensor> tensors_of(const Config& config, Inputs& inputs);

struct FileOptions {
  std::vector<DType> dtypes = {DType::F32};  // dealt out in turn; of a half, the words are random
};
// Writes them into a folder of their own and returns it. It stays: known mistakes are asked the
// same questions later.
std::filesystem::path write_model(const std::vector<FileTensor>& tensors,
                                  const FileOptions& options = {});

// The numbers of a stored F32, F16 or BF16 tensor, by the definition of the formats.
Expected values_of(const StoredTensor& tensor);

}  // namespace stagecraft::stages
