#include "convert/gguf_keys.h"

#include <algorithm>

#include "base/error.h"
#include "model/rope_frequencies.h"

namespace stagecraft {

std::string gguf_architecture(const Config& config, const std::string& where) {
  const std::size_t window = *std::ranges::max_element(config.windows);
  if (window != 0) {
    throw Error("{}: a sliding window of {} tokens cannot be expressed in GGUF for {}", where,
                window, config.model_type);
  }
  return config.model_type == "mistral" ? "llama" : config.model_type;
}

void add_gguf_config(GgufWriter& writer, const Config& config, const std::string& where) {
  const std::string architecture = gguf_architecture(config, where);
  const auto add = [&](std::string_view name, auto value) {
    writer.add(fmt::format("{}.{}", architecture, name), value);
  };
  const auto size = [&](std::string_view name, std::size_t value) {
    add(name, static_cast<std::uint32_t>(value));
  };
  writer.add("general.architecture", std::string_view(architecture));
  size("vocab_size", config.vocab_size);
  size("context_length", config.max_seq_len);
  size("embedding_length", config.dim);
  size("feed_forward_length", config.ffn_dim);
  size("block_count", config.n_layers);
  size("attention.head_count", config.n_heads);
  size("attention.head_count_kv", config.n_kv_heads);
  if (config.n_heads * config.head_dim != config.dim) {
    size("attention.key_length", config.head_dim);
    size("attention.value_length", config.head_dim);
  }
  add("attention.layer_norm_rms_epsilon", config.norm_eps);
  size("rope.dimension_count", config.head_dim);
  add("rope.freq_base", static_cast<float>(config.rope.theta));
  if (config.rope.type == RopeConfig::Type::Linear) {
    add("rope.scaling.type", "linear");
    add("rope.scaling.factor", static_cast<float>(config.rope.factor));
  }
}

std::vector<float> gguf_rope_factors(const Config& config) {
  if (config.rope.type != RopeConfig::Type::Llama3) return config.rope.factors;
  RopeConfig plain = config.rope;
  plain.type = RopeConfig::Type::Default;
  const std::vector<float> fast = rope_frequencies(plain, config.head_dim);
  const std::vector<float> slow = rope_frequencies(config.rope, config.head_dim);
  std::vector<float> factors(fast.size());
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i] = fast[i] / slow[i];
  return factors;
}

}  // namespace stagecraft
