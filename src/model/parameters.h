#pragma once

#include <span>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "tensor/matrix.h"

namespace stagecraft {

// One linear map y = x * weight^T + bias, as PyTorch's nn.Linear.
struct Linear {
  MatrixView<const float> weight;  // [outputs, inputs]
  std::span<const float> bias;     // [outputs], or empty
};

struct AttentionParameters {
  std::span<const float> norm;            // [dim]
  Linear q;                               // [n_heads * head_dim, dim]
  Linear k, v;                            // [n_kv_heads * head_dim, dim]
  std::span<const float> q_norm, k_norm;  // [head_dim], or empty
  Linear o;                               // [dim, n_heads * head_dim]
};

struct MlpParameters {
  std::span<const float> norm;  // [dim]
  Linear gate, up;              // [ffn_dim, dim]
  Linear down;                  // [dim, ffn_dim]
};

struct LayerParameters {
  AttentionParameters attention;
  MlpParameters mlp;
};

// Every weight of a model as f32. F32 tensors are views into the mapped file of the checkpoint,
// which must outlive this; F16, BF16 and quantised tensors were converted to f32 into `converted`.
struct Parameters {
  MatrixView<const float> embedding;  // [vocab_size, dim]
  std::vector<LayerParameters> layers;
  std::span<const float> final_norm;  // [dim]
  Linear lm_head;                     // tied: the embedding itself

  std::vector<Matrix<float>> converted;
};

// Reads the tensors of a Hugging Face checkpoint by name. If config.tied_embeddings is true and the
// file holds only one of model.embed_tokens.weight and lm_head.weight, that table is the embedding
// and the output head. If the file holds both tables, each is used for its own purpose, whatever
// the config says. Throws Error that names the tensor, and no other
//   - if a tensor is missing or has another shape;
//   - if its dtype is not F32, F16, BF16 or a quantised type;
//   - if the checkpoint holds a tensor that no part of this model uses.
Parameters load_parameters(const Config& config, const Checkpoint& checkpoint);

}  // namespace stagecraft
