#include "formats/llama2c/config.h"

#include <nlohmann/json.hpp>

#include "base/json_text.h"

namespace stagecraft {

std::string llama2c_config_json(const Llama2cHeader& header) {
  nlohmann::json config = {
      {"model_type", "llama"},
      {"hidden_size", header.dim},
      {"intermediate_size", header.ffn_dim},
      {"num_hidden_layers", header.n_layers},
      {"num_attention_heads", header.n_heads},
      {"num_key_value_heads", header.n_kv_heads},
      {"vocab_size", header.vocab_size},
      {"max_position_embeddings", header.max_seq_len},
      {"rms_norm_eps", 1e-5},
      {"rope_theta", 10'000.0},
      {"tie_word_embeddings", header.tied},
  };
  if (header.vocab_size > 2) {
    config["bos_token_id"] = 1;
    config["eos_token_id"] = {1, 2};
  }
  return json_text(config);
}

}  // namespace stagecraft
