// This gives away stage 5: it is our answer to stages/05-parameters/config.cpp.
#include "model/config.h"

#include "base/config_fields.h"
#include "model/config_extensions.h"
#include "model/config_fields.h"
#include "model/family.h"

namespace stagecraft {
namespace {

void parse_heads(const ConfigFields& fields, const Family& family, Config& config) {
  config.n_heads = fields.size("num_attention_heads");
  const bool as_many = family.n_kv_heads == 0 || fields.is_null("num_key_value_heads");
  config.n_kv_heads =
      fields.size_or("num_key_value_heads", as_many ? config.n_heads : family.n_kv_heads);
  if (config.n_heads % config.n_kv_heads != 0) {
    throw Error(
        "{}: 'num_attention_heads': expected a multiple of 'num_key_value_heads' {}, found {}",
        fields.where(), config.n_kv_heads, config.n_heads);
  }
  std::string origin;
  if (fields.has("head_dim")) {
    config.head_dim = fields.size("head_dim");
  } else if (family.head_dim != 0) {
    config.head_dim = family.head_dim;
  } else {
    config.head_dim = config.dim / config.n_heads;
    origin = fmt::format(" (hidden_size {} / num_attention_heads {})", config.dim, config.n_heads);
    if (config.dim % config.n_heads != 0) {
      throw Error("{}: 'hidden_size': expected a multiple of 'num_attention_heads' {}, found {}",
                  fields.where(), config.n_heads, config.dim);
    }
  }
  if (config.head_dim % 2 != 0) {
    throw Error("{}: 'head_dim': expected an even number (RoPE rotates pairs), found {}{}",
                fields.where(), config.head_dim, origin);
  }
}

}  // namespace

Config parse_config(const std::string& text, const std::string& where) {
  const Json json = parse_json_object(text, where);
  const ConfigFields fields(json, where);
  const Family& family = parse_family(fields);
  refuse_foreign_arithmetic(fields);

  Config config;
  config.model_type = family.model_type;
  config.vocab_size = fields.size("vocab_size");
  config.dim = fields.size("hidden_size");
  config.ffn_dim = fields.size("intermediate_size");
  config.n_layers = fields.size("num_hidden_layers", 1, kMaxLayers);
  parse_heads(fields, family, config);
  config.max_seq_len = fields.size_or("max_position_embeddings", family.max_seq_len);
  config.norm_eps = static_cast<float>(fields.number_or("rms_norm_eps", 1e-6, kMinEps, kMaxEps));
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  config.o_bias = family.reads_attention_bias && fields.flag_or("attention_bias", false);
  config.qkv_bias = family.always_qkv_bias || config.o_bias;
  config.mlp_bias = family.reads_mlp_bias && fields.flag_or("mlp_bias", false);
  config.qk_norm = family.qk_norm;

  config.rope = parse_rope(fields, config.max_seq_len);
  config.windows = parse_windows(fields, config);
  config.eos_ids = parse_eos_ids(fields, config.vocab_size);
  return config;
}

}  // namespace stagecraft
