#pragma once

#include "model/config.h"

namespace stagecraft::stages {

// The numbers of a Config, for the exchange between worker and gate: calls visit(member, field,
// value) for each. `field` is its name in config.json.
template <class AnyConfig, class Visit>
void visit_numbers(AnyConfig& config, Visit visit) {
  visit("vocab_size", "vocab_size", config.vocab_size);
  visit("dim", "hidden_size", config.dim);
  visit("ffn_dim", "intermediate_size", config.ffn_dim);
  visit("n_layers", "num_hidden_layers", config.n_layers);
  visit("n_heads", "num_attention_heads", config.n_heads);
  visit("n_kv_heads", "num_key_value_heads", config.n_kv_heads);
  visit("head_dim", "head_dim", config.head_dim);
  visit("max_seq_len", "max_position_embeddings", config.max_seq_len);
  visit("norm_eps", "rms_norm_eps", config.norm_eps);
  visit("tied_embeddings", "tie_word_embeddings", config.tied_embeddings);
  visit("qkv_bias", "attention_bias", config.qkv_bias);
  visit("o_bias", "attention_bias", config.o_bias);
  visit("mlp_bias", "mlp_bias", config.mlp_bias);
  visit("qk_norm", "model_type", config.qk_norm);
  visit("rope.theta", "rope_theta", config.rope.theta);
}

}  // namespace stagecraft::stages
