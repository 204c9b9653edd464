#include "model/config_extensions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stagecraft {
namespace {

// Frequencies stay between 0 and 1 radian a position, and in what f32 holds.
constexpr double kMinTheta = 1.0, kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;
constexpr double kMinBand = 1e-3;

// What other families put into a config.json to change the arithmetic: a part of the name, because
// every family coins its own, and the one number that would change nothing.
struct ForeignArithmetic {
  std::string_view part;
  double neutral;
};

constexpr std::array kForeignArithmetic = {
    ForeignArithmetic{"scale", 1},
    ForeignArithmetic{"scaling", 1},
    ForeignArithmetic{"multiplier", 1},
    ForeignArithmetic{"rotary", 1},
    ForeignArithmetic{"softcap", 0},
    ForeignArithmetic{"expert", 0},
    ForeignArithmetic{"moe", 0},
    ForeignArithmetic{"quantization", 0},
    ForeignArithmetic{"clip", 0},
    ForeignArithmetic{"alibi", 0},
    ForeignArithmetic{"parallel", 0},
    ForeignArithmetic{"layernorm", 0},
    ForeignArithmetic{"pre_norm", 0},
    ForeignArithmetic{"post_norm", 0},
    ForeignArithmetic{"no_rope", 0},
    ForeignArithmetic{"interleaved", 0},
    ForeignArithmetic{"qk_norm", 0},
    ForeignArithmetic{"query_pre_attn", 0},
    ForeignArithmetic{"attn_temperature", 0},
    ForeignArithmetic{"per_layer_config", 0},
};

// What transformers takes where a file does not say. ("sliding_window": null says: none.)
constexpr std::size_t kDefaultWindow = 4096;
constexpr std::size_t kDefaultMaxWindowLayers = 28;

constexpr std::string_view kOriginalContext = "original_max_position_embeddings";

bool changes_the_result(std::string_view key, const Json& value) {
  if (key == "is_causal") return value == false;  // transformers lets any family see the future so
  if (key == "rope_scaling" || key == "rope_parameters") return false;  // honoured, see parse_rope
  if (value.is_null() || value == false) return false;
  if ((value.is_array() || value.is_object()) && value.empty()) return false;
  return std::any_of(kForeignArithmetic.begin(), kForeignArithmetic.end(),
                     [&](const auto& foreign) {
                       const bool named = key.find(foreign.part) != std::string_view::npos;
                       return named && !(value.is_number() && value == foreign.neutral);
                     });
}

RopeConfig::Type rope_type(const ConfigFields& fields, const std::string& name) {
  if (name == "default") return RopeConfig::Type::Default;
  if (name == "linear") return RopeConfig::Type::Linear;
  if (name == "llama3") return RopeConfig::Type::Llama3;
  throw Error("{}: rope type: expected default, linear or llama3, found '{}'", fields.where(),
              printable(name));
}

// Whatever else stands beside the angles would change them and be lost: an attention_factor, an
// mrope_section, other parameters for each type of layer.
void refuse_foreign_rope(const ConfigFields& fields, std::span<const std::string_view> honoured) {
  constexpr std::array<std::string_view, 7> kKnown = {
      "rope_type",        "type",          "rope_theta", "factor", "low_freq_factor",
      "high_freq_factor", kOriginalContext};
  for (const auto& [name, value] : fields.object().items()) {
    const bool known = std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end() ||
                       std::ranges::find(honoured, name) != honoured.end();
    if (known || value.is_null() || (name == "partial_rotary_factor" && value == 1)) continue;
    throw Error("{}: '{}': {} is not supported", fields.where(), printable(name),
                describe_json(value));
  }
}

}  // namespace

void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::span<const std::string_view> honoured) {
  for (const auto& [key, value] : fields.object().items()) {
    if (std::ranges::find(honoured, key) != honoured.end()) continue;
    if (changes_the_result(key, value)) {
      throw Error("{}: '{}': {} is not supported", fields.where(), printable(key),
                  describe_json(value));
    }
  }
}

void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim) {
  if (n_heads % n_kv_heads != 0) {
    throw Error(
        "{}: 'num_attention_heads': expected a multiple of 'num_key_value_heads' {}, found {}",
        fields.where(), n_kv_heads, n_heads);
  }
  if (head_dim % 2 != 0) {
    throw Error("{}: 'head_dim': expected an even number (RoPE turns pairs), found {}",
                fields.where(), head_dim);
  }
}

RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured) {
  RopeConfig rope;
  rope.theta = top.number_or("rope_theta", theta, kMinTheta, kMaxTheta);
  const Json* scaling = top.find("rope_scaling");
  const bool older = scaling != nullptr && !scaling->empty();
  const std::string_view key = older ? "rope_scaling" : "rope_parameters";
  const Json* object = top.find(key);
  if (object == nullptr) return rope;
  if (!object->is_object()) {
    throw Error("{}: '{}': expected an object, found {}", top.where(), key, describe_json(*object));
  }
  const ConfigFields fields(*object, fmt::format("{}: {}", top.where(), key));
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  rope.type = rope_type(fields, type);
  refuse_foreign_rope(fields, honoured);
  rope.theta = fields.number_or("rope_theta", rope.theta, kMinTheta, kMaxTheta);
  if (rope.type == RopeConfig::Type::Default) return rope;

  rope.factor = fields.number("factor", 1.0, kMaxFactor);
  if (rope.type == RopeConfig::Type::Linear) return rope;

  rope.low_freq_factor = fields.number("low_freq_factor", kMinBand, kMaxFactor);
  rope.high_freq_factor = fields.number("high_freq_factor", kMinBand, kMaxFactor);
  // Beside the object it goes before inside; nowhere, the whole context is the original one.
  const ConfigFields& outer = top.has(kOriginalContext) ? top : fields;
  rope.original_max_seq_len = static_cast<double>(outer.size_or(kOriginalContext, max_seq_len));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    throw Error("{}: 'high_freq_factor': expected more than 'low_freq_factor' {}, found {}",
                fields.where(), rope.low_freq_factor, rope.high_freq_factor);
  }
  return rope;
}

PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names) {
  constexpr std::array<std::string_view, 1> kHonoured = {"partial_rotary_factor"};
  constexpr double kUsualTheta = 10'000.0;
  if (names.theta != "rope_theta" && fields.has("rope_theta")) {
    throw Error("{}: 'rope_theta': expected '{}' instead, found {}", fields.where(), names.theta,
                describe_json(*fields.find("rope_theta")));
  }
  PartialRope partial;
  const double theta = fields.number_or(names.theta, kUsualTheta, kMinTheta, kMaxTheta);
  partial.rope = parse_rope(fields, max_seq_len, theta, kHonoured);
  if (partial.rope.type != RopeConfig::Type::Default) {
    throw Error("{}: rope type: expected default, found {}", fields.where(),
                partial.rope.type == RopeConfig::Type::Linear ? "linear" : "llama3");
  }
  double factor = fields.number_or(names.factor, names.usual, 0.0, 1.0);
  for (const std::string_view key : {"rope_scaling", "rope_parameters"}) {
    const Json* object = fields.find(key);
    if (object == nullptr || object->empty()) continue;
    const ConfigFields inner(*object, fmt::format("{}: {}", fields.where(), key));
    factor = inner.number_or(kHonoured[0], factor, 0.0, 1.0);
    break;  // as parse_rope: the second one counts only without the first
  }
  partial.columns = static_cast<std::size_t>(static_cast<double>(head_dim) * factor);
  if (partial.columns == 0 || partial.columns % 2 != 0) {
    throw Error("{}: '{}': expected an even number of columns of a head of {}, found {}",
                fields.where(), names.factor, head_dim, partial.columns);
  }
  return partial;
}

// Which layers look back only so far. Newer files list a type for each layer; older ones of Qwen
// say from which layer on (and whether at all), Mistral's mean every layer.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config) {
  std::vector<std::size_t> windows(config.n_layers, 0);
  const bool qwen = config.model_type == "qwen2" || config.model_type == "qwen3";
  for (const std::string_view key : {"sliding_window", "layer_types"}) {
    const bool read = qwen || (key == "sliding_window" && config.model_type == "mistral");
    if (!read && fields.has(key)) {
      throw Error("{}: '{}' is not supported for model type '{}'", fields.where(), key,
                  config.model_type);
    }
  }
  if (config.model_type == "llama") return windows;
  const bool used = !qwen || fields.flag_or("use_sliding_window", false);
  const bool none = !used || fields.is_null("sliding_window");
  const std::size_t window = none ? 0 : fields.size_or("sliding_window", kDefaultWindow);
  if (fields.has("layer_types")) return parse_layer_types(fields, config.n_layers, window);
  const std::size_t first =
      qwen ? fields.size_or("max_window_layers", kDefaultMaxWindowLayers, 0) : 0;
  for (std::size_t i = first; i < config.n_layers; ++i) windows[i] = window;
  return windows;
}

std::vector<std::size_t> parse_layer_types(const ConfigFields& fields, std::size_t n_layers,
                                           std::size_t window) {
  const Json& types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != n_layers) {
    throw Error("{}: 'layer_types': expected one for each of {} layers, found {}", fields.where(),
                n_layers, describe_json(types));
  }
  std::vector<std::size_t> windows(n_layers, 0);
  for (std::size_t i = 0; i < n_layers; ++i) {
    const std::string& type = json_string(types[i], fields.where(), "layer_types");
    if (type == "sliding_attention") {
      if (window == 0) {
        throw Error("{}: 'layer_types': layer {} slides, but there is no 'sliding_window'",
                    fields.where(), i);
      }
      windows[i] = window;
    } else if (type != "full_attention") {
      throw Error("{}: 'layer_types': '{}' is not supported", fields.where(), printable(type));
    }
  }
  return windows;
}

std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size) {
  constexpr std::string_view kKey = "eos_token_id";
  std::vector<TokenId> ids;
  const auto add = [&](const Json& id) {
    ids.push_back(static_cast<TokenId>(json_size(id, fields.where(), kKey, 0, vocab_size - 1)));
  };
  const Json* value = fields.find(kKey);
  if (value == nullptr) return ids;
  if (value->is_array()) {
    for (const Json& id : *value) add(id);
  } else {
    add(*value);
  }
  return ids;
}

}  // namespace stagecraft
