#include "model/config.h"

#include <algorithm>
#include <array>

#include "base/mapped_file.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxConfigBytes = 4u << 20;
constexpr std::size_t kMaxLayers = 4096;
constexpr double kMinEps = 1e-30;  // what f32 holds, with room for its square
constexpr double kMaxEps = 1.0;

Json parse_object(const std::string& text, const std::string& where) {
  Json json = parse_json(text, where);
  if (json.is_object()) return json;
  throw Error("{}: expected an object, found {}", where, describe_json(json));
}

std::vector<TokenId> parse_ids(const Json* value, const Config& config, const std::string& where,
                               std::string_view key) {
  std::vector<TokenId> ids;
  if (value == nullptr) return ids;
  const auto add = [&](const Json& id) {
    ids.push_back(static_cast<TokenId>(json_size(id, where, key, 0, config.vocab_size - 1)));
  };
  if (value->is_array()) {
    for (const Json& id : *value) add(id);
  } else {
    add(*value);
  }
  return ids;
}

void check_family(const ConfigFields& fields, Config& config) {
  config.model_type = fields.text_or("model_type", "");
  constexpr std::array<std::string_view, 4> kKnown = {"llama", "mistral", "qwen2", "qwen3"};
  if (std::find(kKnown.begin(), kKnown.end(), config.model_type) == kKnown.end()) {
    throw Error("{}: 'model_type': expected llama, mistral, qwen2 or qwen3, found '{}'",
                fields.where(), printable(config.model_type));
  }
  const std::string activation = fields.text_or("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    throw Error("{}: 'hidden_act': expected 'silu', found '{}'", fields.where(),
                printable(activation));
  }
}

// What transformers takes where a file does not say.
std::size_t default_context(const Config& config) {
  if (config.model_type == "llama") return 2048;
  return config.model_type == "mistral" ? 131072 : 32768;
}

void parse_heads(const ConfigFields& fields, Config& config) {
  config.n_heads = fields.size("num_attention_heads");
  // What transformers takes where a file does not say; null says: as many as query heads.
  const bool as_many = config.model_type == "llama" || fields.is_null("num_key_value_heads");
  config.n_kv_heads = fields.size_or(
      "num_key_value_heads", as_many ? config.n_heads : (config.model_type == "mistral" ? 8 : 32));
  if (config.n_heads % config.n_kv_heads != 0) {
    throw Error(
        "{}: 'num_attention_heads': expected a multiple of 'num_key_value_heads' {}, found {}",
        fields.where(), config.n_kv_heads, config.n_heads);
  }
  std::string origin;
  if (fields.has("head_dim")) {
    config.head_dim = fields.size("head_dim");
  } else if (config.model_type == "qwen3") {
    config.head_dim = 128;  // the one family whose default is a fixed number
  } else {
    config.head_dim = config.dim / config.n_heads;
    origin = fmt::format(" (hidden_size {} / num_attention_heads {})", config.dim, config.n_heads);
    if (config.dim % config.n_heads != 0) {
      throw Error("{}: 'hidden_size': expected a multiple of 'num_attention_heads' {}, found {}",
                  fields.where(), config.n_heads, config.dim);
    }
  }
  if (config.head_dim % 2 != 0) {
    throw Error("{}: 'head_dim': expected an even number (RoPE turns pairs), found {}{}",
                fields.where(), config.head_dim, origin);
  }
}

}  // namespace

Config parse_config(const std::string& text, const std::string& where) {
  const Json json = parse_object(text, where);
  const ConfigFields fields(json, where);
  Config config;
  check_family(fields, config);
  refuse_foreign_arithmetic(fields);

  config.vocab_size = fields.size("vocab_size");
  config.dim = fields.size("hidden_size");
  config.ffn_dim = fields.size("intermediate_size");
  config.n_layers = fields.size("num_hidden_layers", 1, kMaxLayers);
  parse_heads(fields, config);
  config.max_seq_len = fields.size_or("max_position_embeddings", default_context(config));
  config.norm_eps = static_cast<float>(fields.number_or("rms_norm_eps", 1e-6, kMinEps, kMaxEps));
  config.rope = parse_rope(fields, config.max_seq_len);
  config.windows = parse_windows(fields, config);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  // "attention_bias" of Llama and Qwen3 is for all four projections. Qwen2 always has one on q, k
  // and v, Mistral never has any, whatever their files say.
  const bool reads_bias = config.model_type == "llama" || config.model_type == "qwen3";
  config.o_bias = reads_bias && fields.flag_or("attention_bias", false);
  config.qkv_bias = config.o_bias || config.model_type == "qwen2";
  config.mlp_bias = config.model_type == "llama" && fields.flag_or("mlp_bias", false);
  config.qk_norm = config.model_type == "qwen3";
  config.eos_ids = parse_ids(fields.find("eos_token_id"), config, where, "eos_token_id");
  return config;
}

Config read_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "config.json";
  Config config = parse_config(read_text_file(path, kMaxConfigBytes), path.string());

  // generation_config.json, where there is one, has the last word on what ends a text.
  const std::filesystem::path generation = folder / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::symlink_status(generation, ignored).type() !=
      std::filesystem::file_type::not_found) {
    const std::string where = generation.string();
    const Json json = parse_object(read_text_file(generation, kMaxConfigBytes), where);
    if (const Json* ids = find_member(json, "eos_token_id")) {
      config.eos_ids = parse_ids(ids, config, where, "eos_token_id");
    }
  }
  return config;
}

}  // namespace stagecraft
