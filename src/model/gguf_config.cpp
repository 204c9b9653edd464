#include "model/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "checkpoint/gguf_weights.h"
#include "model/config_fields.h"

namespace stagecraft {
namespace {

// Keys that change nothing of what is computed, or that others below say again.
constexpr std::array<std::string_view, 4> kWithoutEffect = {
    "tensor_data_layout",                    // how q and k were ordered before they were converted
    "rope.scaling.finetuned",                // whether training went on with the scaling
    "rope.scaling.original_context_length",  // used by yarn, which is refused
    "attention.layer_norm_epsilon",          // of the other norm
};

// The keys of one architecture ("llama.block_count"), each asked for once: what nobody asked for is
// not understood.
class ArchitectureKeys {
 public:
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture)
      : metadata_(metadata), prefix_(fmt::format("{}.", architecture)) {}

  bool has(std::string_view name) { return metadata_.has(key(name)); }
  std::size_t size(std::string_view name, std::size_t max = kMaxDimension) {
    return metadata_.size(key(name), 1, max);
  }
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

void add_heads(ArchitectureKeys& keys, nlohmann::json& config) {
  const std::size_t dim = config["hidden_size"];
  const std::size_t n_heads = keys.size("attention.head_count");
  config["num_attention_heads"] = n_heads;
  config["num_key_value_heads"] = keys.size_or("attention.head_count_kv", n_heads);
  const bool whole = dim % n_heads == 0;
  if (!whole && !keys.has("attention.key_length")) {
    keys.refuse("attention.head_count", fmt::format("a divisor of {} (embedding_length)", dim));
  }
  const std::size_t head_dim = keys.size_or("attention.key_length", whole ? dim / n_heads : 0);
  config["head_dim"] = head_dim;
  for (const std::string_view name : {"attention.value_length", "rope.dimension_count"}) {
    if (keys.size_or(name, head_dim) != head_dim) {
      keys.refuse(name, fmt::format("{}, as a head has", head_dim));
    }
  }
}

void add_rope(ArchitectureKeys& keys, nlohmann::json& config) {
  if (keys.has("rope.freq_base")) config["rope_theta"] = keys.number("rope.freq_base");
  std::string type(keys.text_or("rope.scaling.type", "none"));
  // Older files have the factor only, under another name.
  const bool older = type == "none" && keys.has("rope.scale_linear");
  const std::string_view factor = older ? "rope.scale_linear" : "rope.scaling.factor";
  if (type == "none" && keys.has(factor)) type = "linear";
  if (type == "none" || (type == "linear" && !keys.has(factor))) return;
  if (type != "linear") keys.refuse("rope.scaling.type", "'none' or 'linear'");
  const double value = keys.number(factor);
  if (value != 0.0) config["rope_scaling"] = {{"rope_type", "linear"}, {"factor", value}};
}

// Where the file does not say how many tokens there are, it brings them.
std::size_t vocab_size(const GgufMetadata& metadata, ArchitectureKeys& keys) {
  const bool says = keys.has("vocab_size");
  constexpr std::string_view kTokens = "tokenizer.ggml.tokens";
  if (metadata.has(kTokens)) return metadata.texts(kTokens).size();
  if (!says) throw Error("{}: '{}' is missing", metadata.file(), kTokens);
  return keys.size("vocab_size");
}

nlohmann::json eos_ids(const GgufMetadata& metadata, std::size_t vocab_size) {
  std::vector<std::size_t> ids;
  for (const std::string_view key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                     "tokenizer.ggml.eom_token_id"}) {
    const auto id = metadata.find_size(key, 0, vocab_size - 1);
    if (id && std::ranges::find(ids, *id) == ids.end()) ids.push_back(*id);
  }
  return ids;
}

}  // namespace

std::string gguf_config_json(const GgufFile& file) {
  const GgufMetadata& metadata = file.metadata();
  constexpr std::string_view kArchitecture = "general.architecture";
  const std::string architecture(metadata.text(kArchitecture));
  if (architecture != "llama" && architecture != "qwen2" && architecture != "qwen3") {
    metadata.refuse(kArchitecture, "llama, qwen2 or qwen3");
  }
  ArchitectureKeys keys(metadata, architecture);
  nlohmann::json config;
  config["model_type"] = architecture;
  config["hidden_size"] = keys.size("embedding_length");
  config["intermediate_size"] = keys.size("feed_forward_length");
  config["num_hidden_layers"] = keys.size("block_count", kMaxLayers);
  config["max_position_embeddings"] = keys.size("context_length");
  config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon", kMinEps, kMaxEps);
  add_heads(keys, config);
  add_rope(keys, config);
  const std::size_t n_tokens = vocab_size(metadata, keys);
  config["vocab_size"] = n_tokens;
  if (n_tokens != 0) config["eos_token_id"] = eos_ids(metadata, n_tokens);
  keys.refuse_leftovers();

  // What a file says by the tensors that it has. A model with a part of these biases is refused
  // when its tensors are taken.
  config["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  config["attention_bias"] = file.find("blk.0.attn_output.bias") != nullptr;
  config["mlp_bias"] = file.find("blk.0.ffn_down.bias") != nullptr;
  return json_text(config);
}

Config gguf_config(const GgufFile& file) {
  const std::string where = file.metadata().file();
  Config config = parse_config(gguf_config_json(file), fmt::format("{}: metadata", where));
  const StoredTensor* factors = file.find(kGgufRopeFactors);
  if (factors == nullptr) return config;
  if (factors->dtype != DType::F32 || factors->shape != std::vector{config.head_dim / 2}) {
    throw Error("{}: tensor '{}': expected F32 [{}], found {} {}", where, kGgufRopeFactors,
                config.head_dim / 2, dtype_name(factors->dtype), shape_text(factors->shape));
  }
  std::vector<float> copy;
  const std::span<const float> values = elements(*factors, copy);
  for (const float value : values) {
    if (std::isfinite(value) && value >= 1e-6f) continue;
    throw Error("{}: tensor '{}': expected positive numbers, found {}", where, kGgufRopeFactors,
                value);
  }
  config.rope.factors.assign(values.begin(), values.end());
  return config;
}

}  // namespace stagecraft
