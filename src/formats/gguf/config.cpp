#include "formats/gguf/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/quoted_names.h"
#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/layer_kinds.h"
#include "formats/gguf/rope.h"
#include "model/config_fields.h"
#include "model/config_file.h"

namespace stagecraft {
namespace {

// The file has one number per layer: 0 for a convolution, and the same number for every layer with
// attention.
std::size_t heads_of_layers(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kKeyHeads = "attention.head_count_kv";
  const std::vector<std::int64_t> heads = keys.integers(kKeyHeads);
  const std::int64_t most = heads.empty() ? 0 : std::ranges::max(heads);
  if (heads.size() != config["num_hidden_layers"] || most < 1) {
    keys.refuse(kKeyHeads, fmt::format("a number for each of {} layers, not all 0",
                                       config["num_hidden_layers"].get<std::size_t>()));
  }
  for (const std::int64_t n : heads) {
    if (n != 0 && n != most) keys.refuse(kKeyHeads, "the same number in all attention layers");
    config["layer_types"].push_back(n == 0 ? "conv" : "full_attention");
  }
  return static_cast<std::size_t>(most);
}

void add_heads(ArchitectureKeys& keys, const GgufFile& file, const GgufArchitecture& architecture,
               nlohmann::json& config) {
  const std::size_t dim = config["hidden_size"];
  const std::size_t n_heads = keys.size_of_layers("attention.head_count");
  config["num_attention_heads"] = n_heads;
  constexpr std::string_view kKeyHeads = "attention.head_count_kv";
  config["num_key_value_heads"] = architecture.conv_layers ? heads_of_layers(keys, config)
                                  : !keys.has(kKeyHeads)   ? n_heads
                                                           : keys.size_of_layers(kKeyHeads);
  const bool whole = dim % n_heads == 0;
  const bool may_differ = architecture.has_head_dim && keys.has("attention.key_length");
  if (!whole && !may_differ) {
    keys.refuse("attention.head_count", fmt::format("a divisor of {} (embedding_length)", dim));
  }
  const std::size_t head_dim = may_differ ? keys.size("attention.key_length") : dim / n_heads;
  if (architecture.has_head_dim) config["head_dim"] = head_dim;
  for (const std::string_view name :
       {"attention.key_length", "attention.value_length", "rope.dimension_count"}) {
    const std::size_t size = keys.size_or(name, head_dim);
    const bool part = architecture.partial_rope && name == "rope.dimension_count";
    if (part) config["partial_rotary_factor"] = rotary_factor(size, head_dim);
    if (part ? size > head_dim : size != head_dim) {
      keys.refuse(name, part ? fmt::format("at most {}, the size of a head", head_dim)
                             : fmt::format("{}, the size of a head", head_dim));
    }
  }
  if (architecture.rope_factors == GgufArchitecture::RopeFactors::Any) {
    add_rope_factors(file, head_dim, config);
  }
}

// Newer files store two sizes: the sizes of the computation that llama.cpp prefers, in which all
// heads share the latent as key and value, and those of the model ("_mla").
void add_latent_heads(ArchitectureKeys& keys, nlohmann::json& config) {
  const bool both = keys.has("attention.key_length_mla");
  const std::string_view key = both ? "attention.key_length_mla" : "attention.key_length";
  const std::size_t n_heads = keys.size("attention.head_count"), key_dim = keys.size(key);
  const std::size_t latent = keys.size("attention.kv_lora_rank");
  const std::size_t rope = keys.size("rope.dimension_count");
  if (key_dim <= rope) keys.refuse(key, fmt::format("more than {} (rope.dimension_count)", rope));
  config["num_attention_heads"] = config["num_key_value_heads"] = n_heads;
  config["kv_lora_rank"] = latent;
  config["qk_rope_head_dim"] = rope;
  config["qk_nope_head_dim"] = key_dim - rope;
  config["v_head_dim"] = keys.size(both ? "attention.value_length_mla" : "attention.value_length");
  keys.expect("attention.head_count_kv", both ? 1 : n_heads);
  if (!both) return;
  keys.expect("attention.key_length", latent + rope);
  keys.expect("attention.value_length", latent);
}

// How experts are chosen. The scoring function follows from the model type, and the file must
// agree. A number of groups or a scale of 0 is read as 1.
void add_routing(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                 nlohmann::json& config) {
  constexpr std::string_view kScores = "expert_gating_func";
  const std::size_t expected = architecture.sigmoid ? 2 : 1;
  if ((keys.is_set(kScores) ? keys.size(kScores) : 1) != expected) {
    keys.refuse(kScores, architecture.sigmoid ? "2 (sigmoid)" : "1 (softmax)");
  }
  for (const char* field : {"n_group", "topk_group", "routed_scaling_factor"}) {
    if (config[field].is_null()) config[field] = 1;
  }
  const bool grouped = !architecture.sigmoid && config["n_group"] != 1;
  if (grouped) config["topk_method"] = "group_limited_greedy";
}

void add_keys(ArchitectureKeys& keys, const GgufArchitecture& architecture,
              nlohmann::json& config) {
  for (const GgufKey& key : architecture.keys) {
    if (!key.required && !keys.has(key.key)) continue;
    if (key.kind != GgufKey::Kind::Flag && !key.required && !keys.is_set(key.key)) {
      config[key.field] = nullptr;
    } else if (key.kind == GgufKey::Kind::Size) {
      config[key.field] = keys.size(key.key);
    } else if (key.kind == GgufKey::Kind::Count) {
      config[key.field] = keys.count(key.key);
    } else if (key.kind == GgufKey::Kind::Flag) {
      config[key.field] = keys.flag(key.key);
    } else {
      config[key.field] = keys.number(key.key);
    }
  }
}

// In llama.cpp, a value head of the delta rule has the size of a key. The file also gives the size
// of all value heads together: the two must agree.
void check_delta(ArchitectureKeys& keys, const nlohmann::json& config) {
  constexpr std::string_view kInner = "ssm.inner_size";
  if (!config.contains("linear_value_head_dim") || !keys.has(kInner)) return;
  const std::size_t heads = config["linear_num_value_heads"], dim = config["linear_value_head_dim"];
  if (keys.size(kInner) != heads * dim) {
    keys.refuse(kInner, fmt::format("{} (heads) * {} (ssm.state_size)", heads, dim));
  }
}

// For models in which all layers have the same head size, block width and RoPE.
void add_one_kind(ArchitectureKeys& keys, const GgufFile& file,
                  const GgufArchitecture& architecture, nlohmann::json& config) {
  config["intermediate_size"] = keys.size_of_layers("feed_forward_length");
  if (architecture.latent_heads) {
    add_latent_heads(keys, config);
  } else {
    add_heads(keys, file, architecture, config);
  }
  add_rope(keys, architecture, config);
  if (architecture.period != 0) add_windows(keys, architecture, config);
}

// If attention is not causal, a token also sees the tokens after it.
void refuse_seeing_ahead(ArchitectureKeys& keys) {
  constexpr std::string_view kCausal = "attention.causal";
  if (keys.has(kCausal) && !keys.flag(kCausal)) keys.refuse(kCausal, "true");
}

// llama.cpp divides scores by the root of head_dim. In the widest model of a family, which it
// recognises by the number of layers, it divides by the root of dim / n_heads instead.
void add_query_scalar(const GgufArchitecture& architecture, nlohmann::json& config) {
  const bool wide = config["num_hidden_layers"] == architecture.wide_model;
  const std::size_t dim = config["hidden_size"], n_heads = config["num_attention_heads"];
  config["query_pre_attn_scalar"] = wide ? nlohmann::json(dim / n_heads) : config["head_dim"];
}

// The number of tokens in the vocabulary of the file, which must agree with "vocab_size"; without a
// vocabulary, "vocab_size".
std::size_t vocab_size(const GgufMetadata& metadata, ArchitectureKeys& keys) {
  const bool says = keys.has("vocab_size");
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  if (metadata.has(kTokens)) {
    const std::size_t n = metadata.texts(kTokens).size();
    if (says && keys.size("vocab_size") != n) {
      keys.refuse("vocab_size", fmt::format("{}, the length of '{}'", n, kTokens));
    }
    return n;
  }
  if (!says) throw Error("{}: '{}' is missing", metadata.file(), kTokens);
  return keys.size("vocab_size");
}

// The tokens that end a text; none if there is no vocabulary.
std::vector<std::size_t> eos_ids(const GgufMetadata& metadata, std::size_t vocab_size) {
  std::vector<std::size_t> ids;
  if (vocab_size == 0) return ids;
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    const auto id = metadata.find_token_id(key, vocab_size);
    if (id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
}

// Flags that depend on which tensors the file has. A model that has only some of its biases is
// refused later, when its tensors are read.
void add_tensor_flags(const GgufFile& file, const GgufArchitecture& architecture,
                      nlohmann::json& config) {
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  for (const GgufTensorFlag& flag : architecture.flags) {
    const bool is_true = (file.find(flag.tensor) != nullptr) == flag.if_present;
    if (!is_true && flag.field.starts_with(kStoredFields)) continue;
    config[flag.field] = is_true || config.value(flag.field, false);
  }
}

// The names of fields that the config.json of this architecture has instead of the common ones.
void rename_fields(const GgufArchitecture& architecture, nlohmann::json& config) {
  for (const GgufField& field : architecture.fields) {
    if (!config.contains(field.common)) continue;
    if (!field.own.empty()) config[field.own] = config[field.common];
    config.erase(field.common);
  }
}

// ---- errors -------------------------------------------------------------------------------------

// The key whose value gguf_config_json() copies into this field unchanged; "" if there is none.
std::string_view key_of(const GgufArchitecture& architecture, std::string_view field) {
  constexpr GgufKey kKeys[] = {
      {"embedding_length", "hidden_size"},
      {"block_count", "num_hidden_layers"},
      {"context_length", "max_position_embeddings"},
      {"attention.head_count", "num_attention_heads"},
      {"attention.sliding_window", "sliding_window"},
      {"feed_forward_length", "intermediate_size"},
      {"vocab_size", "vocab_size"},
      {"attention.kv_lora_rank", "kv_lora_rank"},
      {"rope.dimension_count", "qk_rope_head_dim"},
      {"rope.scaling.original_context_length", "original_max_position_embeddings"},
      {"rope.scaling.factor", "factor"},
  };
  // Not for architectures with two kinds of layers: there, each kind has a key of its own.
  constexpr GgufKey kKeysOfOneKind[] = {
      {"attention.head_count_kv", "num_key_value_heads"},
      {"attention.key_length", "head_dim"},
      {"rope.freq_base", "rope_theta"},
  };
  const auto own = std::ranges::find(architecture.fields, field, &GgufField::own);
  if (own != architecture.fields.end()) field = own->common;
  if (field == architecture.norm_eps.field) return architecture.norm_eps.key;
  std::vector<std::span<const GgufKey>> tables = {architecture.keys, kKeys};
  if (!architecture.two_kinds) tables.emplace_back(kKeysOfOneKind);
  for (const std::span<const GgufKey> keys : tables) {
    const auto found = std::ranges::find(keys, field, &GgufKey::field);
    if (found != keys.end()) return found->key;
  }
  return "";
}

}  // namespace

std::string gguf_config_json(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  const GgufArchitecture* found = find_gguf_architecture(file);
  if (found == nullptr) metadata.refuse("general.architecture", gguf_architecture_names());
  const GgufArchitecture& architecture = *found;
  ArchitectureKeys keys(metadata, architecture.name);
  nlohmann::json config = json_value(architecture.fixed);
  config["model_type"] = architecture.model_type;
  config["hidden_size"] = keys.size("embedding_length");
  config["num_hidden_layers"] = std::min(keys.size("block_count", kMaxLayers),
                                         gguf_first_predicting_layer(metadata, architecture));
  config["max_position_embeddings"] = keys.size("context_length");
  config[architecture.norm_eps.field] = keys.number(architecture.norm_eps.key, kMinEps, kMaxEps);
  if (architecture.two_kinds) {
    add_two_kinds(keys, file, architecture, config);
  } else {
    add_one_kind(keys, file, architecture, config);
  }
  add_keys(keys, architecture, config);
  check_delta(keys, config);
  if (architecture.latent_heads) add_routing(keys, architecture, config);
  if (architecture.wide_model != 0) add_query_scalar(architecture, config);
  const std::size_t n_tokens = vocab_size(metadata, keys);
  config["vocab_size"] = n_tokens;
  if (architecture.two_kinds) config["vocab_size_per_layer_input"] = n_tokens;
  if (const auto ids = eos_ids(metadata, n_tokens); !ids.empty()) config["eos_token_id"] = ids;
  for (const std::string_view key : architecture.no_effect) keys.ignore(key);
  if (architecture.predicts) keys.ignore("nextn_predict_layers");  // gguf_first_predicting_layer
  refuse_seeing_ahead(keys);
  keys.refuse_leftovers();
  add_tensor_flags(file, architecture, config);
  rename_fields(architecture, config);
  return json_text(config);
}

std::string with_gguf_keys(const GgufFile& file, const std::string& where,
                           std::string_view message) {
  const GgufArchitecture& architecture = *find_gguf_architecture(file);
  const std::string renamed = rename_quoted(message, where, [&](const std::string& field) {
    const std::string key = fmt::format("{}.{}", architecture.name, key_of(architecture, field));
    return file.metadata().has(key) ? key : field;
  });
  // If the message names a key, the name of the converted config.json, which the user never sees,
  // is left out.
  const std::size_t first = renamed.find('\'', std::min(where.size(), renamed.size()));
  const bool is_key = first != renamed.npos &&
                      renamed.substr(first + 1).starts_with(fmt::format("{}.", architecture.name));
  return is_key ? fmt::format("{}: {}", file.metadata().file(), renamed.substr(first)) : renamed;
}

}  // namespace stagecraft
