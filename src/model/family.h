#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "model/config_fields.h"

namespace stagecraft {

// The properties that all models with one "model_type" share, in addition to their config.json.
struct Family {
  std::string_view model_type;  // "llama", "mistral", "qwen2" or "qwen3"

  // Defaults of transformers for fields that a file leaves out.
  std::size_t max_seq_len = 0;  // "max_position_embeddings"
  std::size_t n_kv_heads = 0;   // "num_key_value_heads"; 0: as many as query heads
  std::size_t head_dim = 0;     // "head_dim"; 0: hidden_size / num_attention_heads

  bool reads_attention_bias = false;  // whether "attention_bias" is read (biases of q, k, v and o)
  bool always_qkv_bias = false;       // q, k and v have biases, whatever the file says
  bool reads_mlp_bias = false;        // whether "mlp_bias" is read
  bool qk_norm = false;               // RMSNorm of each head's q and k before RoPE
};

// The values of "model_type" that belong to the Llama family.
std::vector<std::string_view> llama_family_types();

// Whether "model_type" belongs to the Llama family, whose models the course's own layers compute.
bool is_llama_family(const ConfigFields& fields);

// The properties of this "model_type". Throws Error if it does not belong to the Llama family, or
// if the activation function is not SiLU.
const Family& parse_family(const ConfigFields& fields);

}  // namespace stagecraft
