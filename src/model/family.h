#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "model/config_fields.h"

namespace stagecraft {

// What all models of one family share, beside what their config.json says.
struct Family {
  std::string_view model_type;  // "llama", "mistral", "qwen2" or "qwen3"

  // What transformers takes where a file does not say.
  std::size_t max_seq_len;  // "max_position_embeddings"
  std::size_t n_kv_heads;   // "num_key_value_heads"; 0: as many as query heads
  std::size_t head_dim;     // "head_dim"; 0: hidden_size / num_attention_heads

  bool reads_attention_bias;  // does "attention_bias" mean anything? (biases of q, k, v and o)
  bool always_qkv_bias;       // biases of q, k and v, whatever the file says
  bool reads_mlp_bias;        // does "mlp_bias" mean anything?
  bool qk_norm;               // RMSNorm of each head's q and k before RoPE
};

// The values of "model_type" that name these.
std::vector<std::string_view> llama_family_types();

// Whether "model_type" names one of these: a model that the course's own layers compute.
bool is_llama_family(const ConfigFields& fields);

// The family that "model_type" names. Throws Error if that is none of these, or if the model has
// another activation than SiLU.
const Family& parse_family(const ConfigFields& fields);

}  // namespace stagecraft
