#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/token.h"

namespace stagecraft {

// How RoPE turns positions into angles; see rope_frequencies.h. Names as in config.json.
struct RopeConfig {
  enum class Type { Default, Linear, Llama3, Yarn };
  Type type = Type::Default;
  double theta = 10'000.0;
  double factor = 1.0;                // all types but default: new context / original context
  double low_freq_factor = 1.0;       // llama3
  double high_freq_factor = 4.0;      // llama3
  double original_max_seq_len = 0.0;  // llama3, yarn: "original_max_position_embeddings"
  double beta_fast = 32.0;        // yarn: pairs that rotate more often in that context are kept,
  double beta_slow = 1.0;         // yarn: and pairs that rotate less often are slowed down
  bool truncate = true;           // yarn: these two bounds are rounded to whole pairs
  double attention_factor = 1.0;  // yarn: both q and k are multiplied by it
  std::vector<float> factors;     // GGUF: the frequency of each pair is divided by its factor.
                                  // [head_dim / 2], or empty
};

// The sizes and settings of a model of the Llama family: the values of config.json, checked, and
// defaults for values that it leaves out.
struct Config {
  std::string model_type;  // "llama", "mistral", "qwen2" or "qwen3"
  std::size_t vocab_size = 0;
  std::size_t dim = 0;      // "hidden_size": width of the residual stream
  std::size_t ffn_dim = 0;  // "intermediate_size": width inside the feed-forward block
  std::size_t n_layers = 0;
  std::size_t n_heads = 0;      // query heads
  std::size_t n_kv_heads = 0;   // key and value heads; divides n_heads
  std::size_t head_dim = 0;     // even; n_heads * head_dim need not be dim
  std::size_t max_seq_len = 0;  // "max_position_embeddings": the context of its training
  float norm_eps = 0.0f;
  RopeConfig rope;
  bool tied_embeddings = false;  // lm_head is the embedding table, unless the file holds both
  bool qkv_bias = false;
  bool o_bias = false;
  bool mlp_bias = false;
  bool qk_norm = false;              // RMSNorm of each head's q and k before RoPE (Qwen3)
  std::vector<std::size_t> windows;  // each layer's window in positions; 0: no window. [n_layers]
  std::vector<TokenId> eos_ids;      // tokens that end a text; may be empty

  std::size_t q_dim() const { return n_heads * head_dim; }
  std::size_t kv_dim() const { return n_kv_heads * head_dim; }
};

// Reads the text of a config.json; `where` names the file in errors. Throws an Error
// that names the wrong field, and no field that is right, if a field is missing or out of range, or
// if it would change the result in a way that this engine does not support.
Config parse_config(const std::string& text, const std::string& where);

}  // namespace stagecraft
