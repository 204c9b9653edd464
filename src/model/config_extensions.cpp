#include "model/config_extensions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "checkpoint/quantization.h"

namespace stagecraft {
namespace {

// With these bounds, frequencies stay between 0 and 1 radian per position and can be represented in
// f32.
constexpr double kMinTheta = 1.0, kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;
constexpr double kMinBand = 1e-3;

// Fields of a config.json with which other families change the arithmetic. `part` is a part of the
// name, because every family uses its own name; `neutral` is the one number that changes nothing.
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
    ForeignArithmetic{"compression", 0},
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

constexpr std::string_view kOriginalContext = "original_max_position_embeddings";

bool is_false(JsonNode value) { return value.is_boolean() && !value.boolean(); }
bool is_number(JsonNode value, double number) {
  return value.is_number() && value.number() == number;
}

bool changes_the_result(std::string_view key, JsonNode value) {
  if (key == "is_causal") return is_false(value);  // false lets any family attend to later tokens
  if (key == "rope_scaling" || key == "rope_parameters") return false;  // supported: see parse_rope
  if (key == "quantization_config") return false;  // how weights are stored: see below
  if (value.is_null() || is_false(value)) return false;
  if ((value.is_array() || value.is_object()) && value.size() == 0) return false;
  return std::any_of(kForeignArithmetic.begin(), kForeignArithmetic.end(),
                     [&](const auto& foreign) {
                       const bool named = key.find(foreign.part) != std::string_view::npos;
                       return named && !is_number(value, foreign.neutral);
                     });
}

RopeConfig::Type rope_type(const ConfigFields& fields, const std::string& name, bool yarn) {
  if (name == "default") return RopeConfig::Type::Default;
  if (name == "linear") return RopeConfig::Type::Linear;
  if (name == "llama3") return RopeConfig::Type::Llama3;
  if (name == "yarn" && yarn) return RopeConfig::Type::Yarn;
  throw Error("{}: rope type: expected default, linear{}, found '{}'", fields.where(),
              yarn ? ", llama3 or yarn" : " or llama3", printable(name));
}

// The default of transformers, which grows with the factor of the context.
double yarn_attention_factor(const ConfigFields& fields, double factor) {
  const auto grown = [&](double weight) {
    return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
  };
  const double one = fields.number_or("mscale", 0.0, 0.0, kMaxFactor);
  const double all = fields.number_or("mscale_all_dim", 0.0, 0.0, kMaxFactor);
  const double usual = one != 0.0 && all != 0.0 ? grown(one) / grown(all) : grown(1.0);
  return fields.number_or(kAttentionFactor, usual, kMinBand, kMaxFactor);
}

void parse_yarn(const ConfigFields& fields, RopeConfig& rope) {
  rope.beta_fast = fields.number_or("beta_fast", rope.beta_fast, kMinBand, kMaxFactor);
  rope.beta_slow = fields.number_or("beta_slow", rope.beta_slow, kMinBand, kMaxFactor);
  rope.truncate = fields.flag_or("truncate", true);
  rope.attention_factor = yarn_attention_factor(fields, rope.factor);
  if (rope.theta == 1.0) {
    throw Error("{}: 'rope_theta': expected more than 1 for rope type yarn, found 1",
                fields.where());
  }
}

constexpr std::array<std::string_view, 6> kYarnFields = {
    kAttentionFactor, "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"};

// Refuses other fields in the object of RoPE. They would change the frequencies, and ignoring them
// would give wrong results: an attention_factor, an mrope_section, other parameters for each type
// of layer.
void refuse_foreign_rope(const ConfigFields& fields, std::span<const std::string_view> honoured) {
  constexpr std::array<std::string_view, 7> kKnown = {
      "rope_type",        "type",          "rope_theta", "factor", "low_freq_factor",
      "high_freq_factor", kOriginalContext};
  for (const JsonNode value : fields.object().members()) {
    const std::string_view name = value.key();
    const bool known = std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end() ||
                       std::ranges::find(honoured, name) != honoured.end();
    if (known || value.is_null() || (name == "partial_rotary_factor" && is_number(value, 1.0)))
      continue;
    refuse_field(fields, value);
  }
}

}  // namespace

void refuse_field(const ConfigFields& fields, JsonNode value) {
  throw Error("{}: '{}': {} is not supported", fields.where(), printable(value.key()),
              value.describe());
}

void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::initializer_list<std::string_view> honoured) {
  parse_quantization(fields.object(), fields.where());  // throws if Checkpoint does not support it
  for (const JsonNode value : fields.object().members()) {
    const std::string_view key = value.key();
    if (std::ranges::find(honoured, key) != honoured.end()) continue;
    if (changes_the_result(key, value)) refuse_field(fields, value);
  }
}

void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim, std::string_view kv_name, std::string_view dim_name) {
  if (n_heads % n_kv_heads != 0) {
    throw Error("{}: 'num_attention_heads': expected a multiple of '{}' {}, found {}",
                fields.where(), kv_name, n_kv_heads, n_heads);
  }
  if (head_dim % 2 != 0) {
    throw Error("{}: '{}': expected an even number (RoPE rotates pairs), found {}", fields.where(),
                dim_name, head_dim);
  }
}

double parse_theta(const ConfigFields& fields, std::string_view key, double usual) {
  return fields.number_or(key, usual, kMinTheta, kMaxTheta);
}

std::optional<ConfigFields> rope_object(const ConfigFields& fields) {
  const std::optional<JsonNode> scaling = fields.find("rope_scaling");
  const bool older = scaling && (scaling->size() != 0 || !scaling->is_object());
  return fields.object_of(older ? "rope_scaling" : "rope_parameters");
}

RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured) {
  return parse_rope(top, rope_object(top), max_seq_len, parse_theta(top, "rope_theta", theta),
                    honoured);
}

RopeConfig parse_rope(const ConfigFields& top, const std::optional<ConfigFields>& object,
                      std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured) {
  RopeConfig rope;
  rope.theta = theta;
  if (!object) return rope;
  const ConfigFields& fields = *object;
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  const bool yarn = std::ranges::find(honoured, kAttentionFactor) != honoured.end();
  rope.type = rope_type(fields, type, yarn);
  refuse_foreign_rope(fields, rope.type == RopeConfig::Type::Yarn ? kYarnFields : honoured);
  rope.theta = parse_theta(fields, "rope_theta", theta);
  if (rope.type == RopeConfig::Type::Default) return rope;

  rope.factor = fields.number("factor", 1.0, kMaxFactor);
  if (rope.type == RopeConfig::Type::Linear) return rope;

  // The field at the top takes precedence over the one inside the object. Without both, the whole
  // context is the original one.
  const ConfigFields& outer = top.has(kOriginalContext) ? top : fields;
  rope.original_max_seq_len = static_cast<double>(outer.size_or(kOriginalContext, max_seq_len));
  if (rope.type == RopeConfig::Type::Yarn) {
    parse_yarn(fields, rope);
    return rope;
  }
  rope.low_freq_factor = fields.number("low_freq_factor", kMinBand, kMaxFactor);
  rope.high_freq_factor = fields.number("high_freq_factor", kMinBand, kMaxFactor);
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    throw Error("{}: 'high_freq_factor': expected more than 'low_freq_factor' {}, found {}",
                fields.where(), rope.low_freq_factor, rope.high_freq_factor);
  }
  return rope;
}

void refuse_stretched_rope(const ConfigFields& fields, const RopeConfig& rope) {
  if (rope.type == RopeConfig::Type::Default) return;
  throw Error("{}: rope type: expected default, found {}", fields.where(),
              rope.type == RopeConfig::Type::Linear ? "linear" : "llama3");
}

PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names) {
  constexpr std::string_view kFactor = "partial_rotary_factor";
  std::vector<std::string_view> honoured(names.honoured.begin(), names.honoured.end());
  honoured.push_back(kFactor);
  constexpr double kUsualTheta = 10'000.0;
  if (names.theta != "rope_theta" && fields.has("rope_theta")) {
    throw Error("{}: 'rope_theta': expected '{}' instead, found {}", fields.where(), names.theta,
                fields.find("rope_theta")->describe());
  }
  PartialRope partial;
  const double theta = parse_theta(fields, names.theta, kUsualTheta);
  partial.rope = parse_rope(fields, max_seq_len, theta, honoured);
  refuse_stretched_rope(fields, partial.rope);
  double factor = fields.number_or(names.factor, names.usual, 0.0, 1.0);
  if (const auto object = rope_object(fields)) {
    factor = object->number_or(kFactor, factor, 0.0, 1.0);
  }
  partial.columns = static_cast<std::size_t>(static_cast<double>(head_dim) * factor);
  if (partial.columns == 0 || partial.columns % 2 != 0) {
    throw Error("{}: '{}': expected an even number of rotated columns (of {} per head), found {}",
                fields.where(), names.factor, head_dim, partial.columns);
  }
  return partial;
}

// Newer files list a type for each layer. Older files of Qwen give the first layer that has a
// window, and whether windows are used at all. In files of Mistral, every layer has the window.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config) {
  const bool qwen = config.model_type == "qwen2" || config.model_type == "qwen3";
  for (const std::string_view key : {"sliding_window", "layer_types"}) {
    const bool read = qwen || (key == "sliding_window" && config.model_type == "mistral");
    if (!read && fields.has(key)) {
      throw Error("{}: '{}' is not supported for model type '{}'", fields.where(), key,
                  config.model_type);
    }
  }
  if (config.model_type == "llama") return std::vector<std::size_t>(config.n_layers, 0);
  const bool used = !qwen || fields.flag_or("use_sliding_window", false);
  const bool none = !used || fields.is_null("sliding_window");
  const std::size_t window = none ? 0 : parse_window(fields);
  const std::size_t first = qwen ? parse_max_window_layers(fields) : 0;
  return parse_sliding_layers(fields, config.n_layers, window,
                              [&](std::size_t i) { return i >= first; });
}

std::vector<bool> parse_attention_layers(const ConfigFields& fields, std::size_t n_layers,
                                         std::string_view other) {
  const JsonNode types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != n_layers) {
    throw Error("{}: 'layer_types': expected one type for each of {} layers, found {}",
                fields.where(), n_layers, types.describe());
  }
  std::vector<bool> attends;
  for (const JsonNode element : types.elements()) {
    const std::string type = json_string(element, fields.where(), "layer_types");
    if (type != "full_attention" && type != other) {
      throw Error("{}: 'layer_types': expected 'full_attention' or '{}', found '{}'",
                  fields.where(), other, printable(type));
    }
    attends.push_back(type == "full_attention");
  }
  return attends;
}

std::optional<std::vector<bool>> parse_listed_layers(const ConfigFields& fields,
                                                     std::string_view key, std::size_t n_layers) {
  const std::optional<JsonNode> list = fields.find(key);
  if (!list) return std::nullopt;
  if (!list->is_array()) {
    throw Error("{}: '{}': expected an array of layers, found {}", fields.where(), key,
                list->describe());
  }
  std::vector<bool> listed(n_layers);
  for (const JsonNode layer : list->elements()) {
    listed[json_size(layer, fields.where(), key, 0, n_layers - 1)] = true;
  }
  return listed;
}

std::vector<bool> every_nth_layer(std::size_t n_layers, std::size_t n) {
  std::vector<bool> chosen(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) chosen[i] = (i + 1) % n == 0;
  return chosen;
}

std::size_t parse_window(const ConfigFields& fields, std::size_t usual) {
  if (!fields.is_null("sliding_window")) return fields.size_or("sliding_window", usual);
  throw Error("{}: 'sliding_window': expected a size, found null", fields.where());
}

std::size_t parse_max_window_layers(const ConfigFields& fields) {
  return fields.has("layer_types") ? 0 : fields.size_or("max_window_layers", 28, 0);
}

std::vector<std::size_t> parse_sliding_layers(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t window,
                                              const std::function<bool(std::size_t)>& slides) {
  std::vector<std::size_t> windows(n_layers, 0);
  if (!fields.has("layer_types")) {
    for (std::size_t i = 0; i < n_layers; ++i) windows[i] = slides(i) ? window : 0;
    return windows;
  }
  const std::vector<bool> full = parse_attention_layers(fields, n_layers, "sliding_attention");
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (full[i]) continue;
    if (window == 0) {
      throw Error("{}: 'layer_types': layer {} has a window, but 'sliding_window' gives no size",
                  fields.where(), i);
    }
    windows[i] = window;
  }
  return windows;
}

std::vector<std::size_t> parse_window_pattern(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t pattern, std::size_t usual) {
  const bool none = fields.is_null("sliding_window") && fields.has("layer_types");
  return parse_sliding_layers(fields, n_layers, none ? 0 : parse_window(fields, usual),
                              [&](std::size_t i) { return (i + 1) % pattern != 0; });
}

std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size) {
  constexpr std::string_view kKey = "eos_token_id";
  std::vector<TokenId> ids;
  const auto add = [&](JsonNode id) {
    ids.push_back(static_cast<TokenId>(json_size(id, fields.where(), kKey, 0, vocab_size - 1)));
  };
  const std::optional<JsonNode> value = fields.find(kKey);
  if (!value) return ids;
  if (value->is_array()) {
    for (const JsonNode id : value->elements()) add(id);
  } else {
    add(*value);
  }
  return ids;
}

}  // namespace stagecraft
