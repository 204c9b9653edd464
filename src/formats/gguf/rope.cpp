#include "formats/gguf/rope.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "model/config_file.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

double theta(ArchitectureKeys& keys, std::string_view name) {
  constexpr double kDefaultTheta = 10'000.0;  // of llama.cpp, for every architecture
  return keys.has(name) ? keys.number(name) : kDefaultTheta;
}

// llama.cpp's script copies most keys from "rope_scaling". It gives two fields the key
// yarn_attn_factor: "attention_factor", which transformers honours and which is at least 1, and
// "attn_factor" of DeepSeek-R1-0528-Qwen3-8B, 0.878, which transformers ignores. llama.cpp ignores
// the key, and multiplies the usual factor by rope.scaling.attn_factor.
void add_yarn(ArchitectureKeys& keys, const GgufArchitecture& architecture,
              nlohmann::json& config) {
  constexpr GgufKey kKeys[] = {
      {"rope.scaling.yarn_beta_fast", "beta_fast"},
      {"rope.scaling.yarn_beta_slow", "beta_slow"},
  };
  nlohmann::json& rope = config["rope_scaling"];
  rope["rope_type"] = "yarn";
  rope["factor"] = keys.number("rope.scaling.factor");
  rope["original_max_position_embeddings"] = keys.size("rope.scaling.original_context_length");
  for (const GgufKey& key : kKeys) {
    if (keys.has(key.key)) rope[key.field] = keys.number(key.key);
  }
  constexpr std::string_view kFactor = "rope.scaling.yarn_attn_factor";
  if (keys.has(kFactor) && keys.number(kFactor) >= 1.0) {
    rope["attention_factor"] = keys.number(kFactor);
  }
  constexpr std::string_view kTimes = "rope.scaling.attn_factor";
  if (keys.has(kTimes) && keys.number(kTimes) != 1.0) {
    if (architecture.latent_heads) keys.refuse(kTimes, "1");
    rope["attention_factor"] = keys.number(kTimes) * yarn_growth(rope["factor"].get<double>());
  }
  // Only in files of DeepSeek: 0.1 times the field of config.json.
  constexpr std::string_view kMultiplier = "rope.scaling.yarn_log_multiplier";
  if (architecture.latent_heads && keys.has(kMultiplier)) {
    rope["mscale"] = rope["mscale_all_dim"] = 10.0 * keys.number(kMultiplier);
  }
  constexpr std::string_view kMix = "rope.scaling.yarn_ext_factor";
  if (keys.has(kMix) && keys.number(kMix) != 1.0) keys.refuse(kMix, "1");
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

// The fraction of each head that RoPE rotates in global layers: the pairs whose frequency is
// divided by 1. The other pairs have the divisor 1e30.
double rotated_fraction(const GgufFile& file, std::size_t head_dim) {
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

}  // namespace

// Half a column is added, so that a rounded product with head_dim is never below the whole number.
double rotary_factor(std::size_t columns, std::size_t head_dim) {
  return std::min(1.0, (static_cast<double>(columns) + 0.5) / static_cast<double>(head_dim));
}

void add_rope(ArchitectureKeys& keys, const GgufArchitecture& architecture,
              nlohmann::json& config) {
  constexpr std::string_view kSwitch = "rope.scaling.finetuned";
  if (architecture.rope_switch && keys.has(kSwitch) && !keys.flag(kSwitch)) {
    keys.refuse(kSwitch, "true (a model without RoPE is not supported)");
  }
  config["rope_theta"] = theta(keys, "rope.freq_base");
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

void add_two_ropes(ArchitectureKeys& keys, const GgufFile& file, nlohmann::json& config) {
  config["rope_parameters"] = {
      {"sliding_attention",
       {{"rope_type", "default"}, {"rope_theta", theta(keys, "rope.freq_base_swa")}}},
      {"full_attention",
       {{"rope_type", "proportional"},
        {"rope_theta", theta(keys, "rope.freq_base")},
        {"partial_rotary_factor", rotated_fraction(file, keys.size("attention.key_length"))}}}};
}

void add_rope_factors(const GgufFile& file, std::size_t head_dim, nlohmann::json& config) {
  if (file.find(kGgufRopeFactors) == nullptr) return;
  std::vector<float> copy;
  const std::span<const float> values = rope_factors(file, head_dim, copy);
  for (const float value : values) {
    if (std::isfinite(value) && value >= 1e-6f) continue;
    throw Error("{}: tensor '{}': expected positive numbers, found {}", file.metadata().file(),
                kGgufRopeFactors, value);
  }
  config[kRopeFactors] = values;
}

}  // namespace stagecraft
