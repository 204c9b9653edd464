#include "model/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/quoted_names.h"
#include "checkpoint/gguf_architectures.h"
#include "checkpoint/gguf_weights.h"
#include "model/config_fields.h"
#include "model/config_file.h"

namespace stagecraft {
namespace {

// Keys that do not influence the computation, or that repeat other keys below.
constexpr std::array<std::string_view, 5> kWithoutEffect = {
    "tensor_data_layout",      // the order of q and k before the conversion
    "rope.scaling.finetuned",  // whether the model was trained further with the scaling
    "rope.scaling.original_context_length",  // of scalings other than yarn
    "attention.layer_norm_epsilon",          // the key of the other kind of norm
    "attention.layer_norm_rms_epsilon",
};

// The keys of one architecture ("llama.block_count"). Remembers which keys were read:
// refuse_leftovers refuses all others.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(fmt::format("{}.", architecture)) {}

  bool has(std::string_view name) { return metadata_.has(key(name)); }
  // Whether there is a value that is not 0, false, "none" or empty.
  bool is_set(std::string_view name) { return has(name) && !metadata_.is_neutral(key(name)); }
  bool is_array(std::string_view name) { return has(name) && metadata_.is_array(key(name)); }
  std::vector<bool> flags(std::string_view name) { return metadata_.flags(key(name)); }
  std::vector<std::int64_t> integers(std::string_view name) {
    return metadata_.integers(key(name));
  }
  std::size_t size(std::string_view name, std::size_t max = kMaxDimension) {
    return metadata_.size(key(name), 1, max);
  }
  std::size_t count(std::string_view name) { return metadata_.size(key(name), 0, kMaxDimension); }
  bool flag(std::string_view name) { return metadata_.flag_or(key(name), false); }
  void ignore(std::string_view name) { asked_.emplace_back(name); }
  std::size_t size_or(std::string_view name, std::size_t fallback) {
    return has(name) ? size(name) : fallback;
  }
  double number(std::string_view name) { return metadata_.number(key(name)); }
  double number(std::string_view name, double min, double max) {
    return metadata_.number(key(name), min, max);
  }
  std::string_view text_or(std::string_view name, std::string_view fallback) {
    return metadata_.text_or(key(name), fallback);
  }
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) {
    metadata_.refuse(key(name), expected);
  }

  void refuse_leftovers() const {
    for (const std::string_view key : metadata_.keys()) {
      if (!key.starts_with(prefix_) || metadata_.is_neutral(key)) continue;
      const std::string_view name = key.substr(prefix_.size());
      const bool known = std::ranges::find(asked_, name) != asked_.end() ||
                         std::ranges::find(kWithoutEffect, name) != kWithoutEffect.end();
      if (!known) metadata_.refuse(key, "no such key (it is not supported)");
    }
  }

 private:
  std::string key(std::string_view name) {
    asked_.emplace_back(name);
    return prefix_ + std::string(name);
  }

  const GgufMetadata& metadata_;
  std::string prefix_;
  std::vector<std::string> asked_;
};

// The factor for RoPE of the first `columns` columns of each head. Half a column is added, so that
// a rounded product with head_dim is never below the whole number.
double rotary_factor(std::size_t columns, std::size_t head_dim) {
  return std::min(1.0, (static_cast<double>(columns) + 0.5) / static_cast<double>(head_dim));
}

// The file has one number per layer: 0 for a convolution, and the same number for every layer with
// attention.
std::size_t heads_of_layers(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kHeads = "attention.head_count_kv";
  const std::vector<std::int64_t> heads = keys.integers(kHeads);
  const std::int64_t most = heads.empty() ? 0 : std::ranges::max(heads);
  if (heads.size() != config["num_hidden_layers"] || most < 1) {
    keys.refuse(kHeads, fmt::format("a number for each of {} layers, not all 0",
                                    config["num_hidden_layers"].get<std::size_t>()));
  }
  for (const std::int64_t n : heads) {
    if (n != 0 && n != most) keys.refuse(kHeads, "the same number in all attention layers");
    config["layer_types"].push_back(n == 0 ? "conv" : "full_attention");
  }
  return static_cast<std::size_t>(most);
}

void add_heads(ArchitectureKeys& keys, const GgufArchitecture& architecture,
               nlohmann::json& config) {
  const std::size_t dim = config["hidden_size"];
  const std::size_t n_heads = keys.size("attention.head_count");
  config["num_attention_heads"] = n_heads;
  config["num_key_value_heads"] = architecture.conv_layers
                                      ? heads_of_layers(keys, config)
                                      : keys.size_or("attention.head_count_kv", n_heads);
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
}

// Throws Error if the file has this key with another value.
void expect_size(ArchitectureKeys& keys, std::string_view name, std::size_t value) {
  if (keys.has(name) && keys.size(name) != value) keys.refuse(name, fmt::format("{}", value));
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
  expect_size(keys, "attention.head_count_kv", both ? 1 : n_heads);
  if (!both) return;
  expect_size(keys, "attention.key_length", latent + rope);
  expect_size(keys, "attention.value_length", latent);
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

// llama.cpp's script copies these keys from "rope_scaling". llama.cpp itself computes the factor of
// attention from the factor of the positions, and ignores what the file says.
void add_yarn(ArchitectureKeys& keys, const GgufArchitecture& architecture,
              nlohmann::json& config) {
  constexpr GgufKey kKeys[] = {
      {"rope.scaling.yarn_beta_fast", "beta_fast"},
      {"rope.scaling.yarn_beta_slow", "beta_slow"},
      {"rope.scaling.attn_factor", "attention_factor"},  // key of older files
      {"rope.scaling.yarn_attn_factor", "attention_factor"},
  };
  nlohmann::json& rope = config["rope_scaling"];
  rope["rope_type"] = "yarn";
  rope["factor"] = keys.number("rope.scaling.factor");
  rope["original_max_position_embeddings"] = keys.size("rope.scaling.original_context_length");
  for (const GgufKey& key : kKeys) {
    if (keys.has(key.key)) rope[key.field] = keys.number(key.key);
  }
  // Only in files of DeepSeek: 0.1 times the field of config.json.
  constexpr std::string_view kMultiplier = "rope.scaling.yarn_log_multiplier";
  if (architecture.latent_heads && keys.has(kMultiplier)) {
    rope["mscale"] = rope["mscale_all_dim"] = 10.0 * keys.number(kMultiplier);
  }
  constexpr std::string_view kMix = "rope.scaling.yarn_ext_factor";
  if (keys.has(kMix) && keys.number(kMix) != 1.0) keys.refuse(kMix, "1");
}

void add_rope(ArchitectureKeys& keys, const GgufArchitecture& architecture,
              nlohmann::json& config) {
  constexpr std::string_view kSwitch = "rope.scaling.finetuned";
  if (architecture.rope_switch && keys.has(kSwitch) && !keys.is_set(kSwitch)) {
    keys.refuse(kSwitch, "true (a model without RoPE is not supported)");
  }
  constexpr double kTheta = 10'000.0;  // llama.cpp's default for every architecture
  config["rope_theta"] = keys.has("rope.freq_base") ? keys.number("rope.freq_base") : kTheta;
  // As in llama.cpp: without a type, a factor is that of "linear"; "none" never scales.
  const std::string_view type = keys.text_or("rope.scaling.type", "linear");
  if (type == "yarn" && architecture.yarn) {
    return add_yarn(keys, architecture, config);
  }
  const bool older = keys.has("rope.scale_linear");  // the factor's name in older files
  const bool newer = keys.has("rope.scaling.factor");
  const std::string_view factor = newer ? "rope.scaling.factor" : "rope.scale_linear";
  config.erase("rope_scaling");
  if (type == "none" || (type == "linear" && !newer && !older)) return;
  if (type != "linear") {
    keys.refuse("rope.scaling.type",
                architecture.yarn ? "'none', 'linear' or 'yarn'" : "'none' or 'linear'");
  }
  const double value = keys.number(factor);
  if (value != 0.0) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", value}};
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

// Which layers have a window: the file lists them, or gives the period (llama.cpp's
// set_swa_pattern), or gives neither.
std::vector<bool> sliding_layers(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                                 std::size_t n_layers) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (keys.is_array(kPattern)) {
    std::vector<bool> slides = keys.flags(kPattern);
    if (slides.size() != n_layers) {
      keys.refuse(kPattern, fmt::format("one flag for each of {} layers", n_layers));
    }
    return slides;
  }
  const std::size_t period = keys.size_or(kPattern, architecture.period);
  std::vector<bool> slides(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) slides[i] = i % period < period - 1;
  return slides;
}

void add_windows(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                 nlohmann::json& config) {
  constexpr std::string_view kWindow = "attention.sliding_window";
  const std::size_t n_layers = config["num_hidden_layers"];
  std::vector<bool> slides = sliding_layers(keys, architecture, n_layers);
  std::size_t window = architecture.window;
  if (keys.has(kWindow)) window = keys.is_set(kWindow) ? keys.size(kWindow) : 0;
  if (window == 0) slides.assign(n_layers, false);
  if (window != 0) config["sliding_window"] = window;
  for (const bool slide : slides) {
    config["layer_types"].push_back(slide ? "sliding_attention" : "full_attention");
  }
}

// For models in which all layers have the same head size, block width and RoPE.
void add_one_kind(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                  nlohmann::json& config) {
  config["intermediate_size"] = keys.size("feed_forward_length");
  if (architecture.latent_heads) {
    add_latent_heads(keys, config);
  } else {
    add_heads(keys, architecture, config);
  }
  add_rope(keys, architecture, config);
  if (architecture.period != 0) add_windows(keys, architecture, config);
}

// ---- layers of two kinds: with a window, or global ----------------------------------------------

// One number per layer. If the file has only one number, all layers have it.
std::vector<std::size_t> sizes_of_layers(ArchitectureKeys& keys, std::string_view name,
                                         std::size_t n_layers) {
  if (!keys.is_array(name)) return std::vector<std::size_t>(n_layers, keys.size(name));
  std::vector<std::size_t> sizes;
  for (const std::int64_t n : keys.integers(name)) {
    if (n < 1 || n > static_cast<std::int64_t>(kMaxDimension)) {
      keys.refuse(name, fmt::format("numbers from 1 to {}", kMaxDimension));
    }
    sizes.push_back(static_cast<std::size_t>(n));
  }
  if (sizes.size() != n_layers) {
    keys.refuse(name, fmt::format("a number for each of {} layers", n_layers));
  }
  return sizes;
}

// Layers that share keys and values may have a feed-forward block of twice the width.
void add_widths(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kWidth = "feed_forward_length";
  constexpr std::string_view kShared = "attention.shared_kv_layers";
  const std::size_t n_layers = config["num_hidden_layers"];
  const std::vector<std::size_t> widths = sizes_of_layers(keys, kWidth, n_layers);
  const std::size_t n_shared = keys.has(kShared) ? keys.count(kShared) : 0;
  const std::size_t n_own = n_layers - std::min(n_layers, n_shared);
  const bool wide = widths.back() != widths.front();
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (widths[i] == (wide && i >= n_own ? 2 : 1) * widths.front()) continue;
    keys.refuse(kWidth, fmt::format("{} in the first {} layers, and the same or twice as many in "
                                    "the others",
                                    widths.front(), n_own));
  }
  config["intermediate_size"] = widths.front();
  config["use_double_wide_mlp"] = wide;
}

// The sizes of heads. Keys that end with "_swa" are for layers with a window.
void add_two_sizes(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kHeads = "attention.head_count_kv";
  const std::size_t n_layers = config["num_hidden_layers"];
  const std::vector<std::size_t> n_kv_heads = sizes_of_layers(keys, kHeads, n_layers);
  const std::size_t global = keys.size("attention.key_length");
  const std::size_t local = keys.size_or("attention.key_length_swa", global);
  expect_size(keys, "attention.value_length", global);
  expect_size(keys, "rope.dimension_count", global);
  expect_size(keys, "attention.value_length_swa", local);
  expect_size(keys, "rope.dimension_count_swa", local);
  config["num_attention_heads"] = keys.size("attention.head_count");
  config["head_dim"] = local;
  config["num_key_value_heads"] = n_kv_heads.front();  // if no layer has a window
  const nlohmann::json& kinds = config["layer_types"];
  for (std::size_t i = 0; i < n_layers; ++i) {
    const auto first = static_cast<std::size_t>(std::ranges::find(kinds, kinds[i]) - kinds.begin());
    if (n_kv_heads[i] != n_kv_heads[first]) {
      keys.refuse(kHeads, "one number for all layers with a window, and one for all global layers");
    }
    if (kinds[i] == "sliding_attention") {
      config["num_key_value_heads"] = n_kv_heads[i];
    } else {
      config["per_layer_config"][std::to_string(i)] = {{"head_dim", global},
                                                       {"num_key_value_heads", n_kv_heads[i]}};
    }
  }
}

// The numbers of "rope_freqs.weight", one per pair of a head.
std::span<const float> rope_factors(const GgufFile& file, std::size_t head_dim,
                                    std::vector<float>& copy) {
  const std::string& where = file.metadata().file();
  const StoredTensor* factors = file.find(kGgufRopeFactors);
  if (factors == nullptr) throw Error("{}: tensor '{}' is missing", where, kGgufRopeFactors);
  if (factors->dtype != DType::F32 || factors->shape != std::vector{head_dim / 2}) {
    throw Error("{}: tensor '{}': expected F32 [{}], found {} {}", where, kGgufRopeFactors,
                head_dim / 2, dtype_name(factors->dtype), shape_text(factors->shape));
  }
  return elements(*factors, copy);
}

// The share of each head that RoPE rotates in global layers: the pairs whose frequency is divided
// by 1. The other pairs have the divisor 1e30.
double rope_share(const GgufFile& file, std::size_t head_dim) {
  constexpr float kNever = 1e30f;
  std::vector<float> copy;
  const std::span<const float> factors = rope_factors(file, head_dim, copy);
  const auto end = std::ranges::find(factors, kNever);
  const auto other = std::find_if(factors.begin(), factors.end(), [&](const float& factor) {
    return factor != (&factor < std::to_address(end) ? 1.0f : kNever);
  });
  if (other != factors.end()) {
    throw Error("{}: tensor '{}': expected 1 for the first pairs and 1e30 for the others, found {}",
                file.metadata().file(), kGgufRopeFactors, *other);
  }
  return rotary_factor(2 * static_cast<std::size_t>(end - factors.begin()), head_dim);
}

void add_two_ropes(ArchitectureKeys& keys, const GgufFile& file, nlohmann::json& config) {
  constexpr double kTheta = 10'000.0;  // of llama.cpp
  const auto theta = [&](std::string_view name) {
    return keys.has(name) ? keys.number(name) : kTheta;
  };
  config["rope_parameters"] = {
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", theta("rope.freq_base_swa")}}},
      {"full_attention",
       {{"rope_type", "proportional"},
        {"rope_theta", theta("rope.freq_base")},
        {"partial_rotary_factor", rope_share(file, keys.size("attention.key_length"))}}}};
}

// Whether global layers use their keys as values: then the file has no tensor for values.
bool values_are_keys(const GgufFile& file, const nlohmann::json& config) {
  const auto& kinds = config["layer_types"];
  const auto first = std::ranges::find(kinds, "full_attention") - kinds.begin();
  return file.find(fmt::format("blk.{}.attn_v.weight", first)) == nullptr;
}

void add_two_kinds(ArchitectureKeys& keys, const GgufFile& file,
                   const GgufArchitecture& architecture, nlohmann::json& config) {
  add_windows(keys, architecture, config);
  add_widths(keys, config);
  add_two_sizes(keys, config);
  add_two_ropes(keys, file, config);
  config["attention_k_eq_v"] = values_are_keys(file, config);
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
    const auto id = metadata.find_size(key, 0, vocab_size - 1);
    if (id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
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
  if (own != architecture.fields.end()) field = own->usual;
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
    add_one_kind(keys, architecture, config);
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
  keys.refuse_leftovers();

  // Flags that depend on which tensors the file has. A model that has only some of its biases is
  // refused later, when its tensors are read.
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  for (const GgufTensorFlag& flag : architecture.flags) {
    const bool is_true = (file.find(flag.tensor) != nullptr) == flag.if_present;
    if (!is_true && flag.field.starts_with(kStoredFields)) continue;
    config[flag.field] = is_true || config.value(flag.field, false);
  }
  for (const GgufField& field : architecture.fields) {
    if (!config.contains(field.usual)) continue;
    if (!field.own.empty()) config[field.own] = config[field.usual];
    config.erase(field.usual);
  }
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

void take_rope_factors(const GgufFile& file, Config& config) {
  const GgufArchitecture* architecture = find_gguf_architecture(file);
  const bool may_have = architecture->rope_factors == GgufArchitecture::RopeFactors::Any;
  if (!may_have || file.find(kGgufRopeFactors) == nullptr) return;
  std::vector<float> copy;
  const std::span<const float> values = rope_factors(file, config.head_dim, copy);
  for (const float value : values) {
    if (std::isfinite(value) && value >= 1e-6f) continue;
    throw Error("{}: tensor '{}': expected positive numbers, found {}", file.metadata().file(),
                kGgufRopeFactors, value);
  }
  config.rope.factors.assign(values.begin(), values.end());
}

}  // namespace stagecraft
