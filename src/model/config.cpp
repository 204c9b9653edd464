#include "model/config.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/json.h"
#include "base/mapped_file.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxConfigBytes = 4u << 20;
constexpr std::size_t kMaxSize = 1u << 24;  // of any one dimension: far above real models, and
                                            // two of them multiplied stay far below overflow
constexpr std::size_t kMaxLayers = 4096;

// The members of one JSON object, with defaults and one kind of error.
class Fields {
 public:
  Fields(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const Json* find(std::string_view key) const { return find_member(object_, key); }
  bool has(std::string_view key) const { return find(key) != nullptr; }

  std::size_t size(std::string_view key, std::size_t min = 1, std::size_t max = kMaxSize) const {
    const Json* value = find(key);
    if (value == nullptr) throw Error("{}: '{}' is missing", where_, key);
    return json_size(*value, where_, key, min, max);
  }
  std::size_t size_or(std::string_view key, std::size_t fallback) const {
    return has(key) ? size(key) : fallback;
  }
  double positive(std::string_view key) const {
    const Json* value = find(key);
    if (value == nullptr) throw Error("{}: '{}' is missing", where_, key);
    const double number = json_number(*value, where_, key);
    if (number <= 0.0) throw Error("{}: '{}': expected more than 0, found {}", where_, key, number);
    return number;
  }
  double positive_or(std::string_view key, double fallback) const {
    return has(key) ? positive(key) : fallback;
  }
  bool flag_or(std::string_view key, bool fallback) const {
    const Json* value = find(key);
    return value == nullptr ? fallback : json_bool(*value, where_, key);
  }
  std::string text_or(std::string_view key, std::string_view fallback) const {
    const Json* value = find(key);
    return value == nullptr ? std::string(fallback) : json_string(*value, where_, key);
  }

  const Json& object() const { return object_; }
  const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
};

// What other families put into a config.json to change the arithmetic. We do not implement it, so
// anything but its neutral value is refused. Parts of names, because every family coins its own.
constexpr std::array<std::string_view, 17> kForeignArithmetic = {
    "scale",     "scaling", "multiplier", "softcap", "expert",   "quantization",
    "clip",      "alibi",   "rotary",     "moe",     "parallel", "layernorm",
    "post_norm", "no_rope", "pre_norm",   "nope",    "residual",
};

// Names that contain one of those and are either read below or change nothing at inference.
constexpr std::array<std::string_view, 8> kHarmless = {
    "rope_scaling",
    "rope_parameters",
    "output_router_logits",
    "router_aux_loss_coef",
    "use_parallel_residual_loss",
    "initializer_range_scale",
    "transformers.js_config",
    "residual_dropout",
};

bool is_neutral(const Json& value) {
  if (value.is_null() || (value.is_boolean() && !value.get<bool>())) return true;
  if (value.is_number()) return value.get<double>() == 1.0 || value.get<double>() == 0.0;
  return (value.is_array() || value.is_object()) && value.empty();
}

void refuse_foreign_arithmetic(const Fields& fields) {
  for (const auto& [key, value] : fields.object().items()) {
    if (std::find(kHarmless.begin(), kHarmless.end(), key) != kHarmless.end()) continue;
    const bool foreign =
        std::any_of(kForeignArithmetic.begin(), kForeignArithmetic.end(),
                    [&](std::string_view part) { return key.find(part) != std::string::npos; });
    if (foreign && !is_neutral(value)) {
      throw Error("{}: '{}': {} is not supported", fields.where(), printable(key),
                  describe_json(value));
    }
  }
}

// Both styles: "rope_theta" and "rope_scaling" at the top, or both inside "rope_parameters".
RopeConfig parse_rope(const Fields& top) {
  RopeConfig rope;
  rope.theta = top.positive_or("rope_theta", 10'000.0);
  const std::string_view key = top.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const Json* object = top.find(key);
  if (object == nullptr) return rope;
  if (!object->is_object()) {
    throw Error("{}: '{}': expected an object, found {}", top.where(), key, describe_json(*object));
  }
  const Fields fields(*object, fmt::format("{}: {}", top.where(), key));
  rope.theta = fields.positive_or("rope_theta", rope.theta);
  if (const double part = fields.positive_or("partial_rotary_factor", 1.0); part != 1.0) {
    throw Error("{}: 'partial_rotary_factor': {} is not supported", fields.where(), part);
  }
  const std::string type = fields.text_or("rope_type", fields.text_or("type", "default"));
  if (type == "default") return rope;
  if (type == "linear") {
    rope.type = RopeConfig::Type::Linear;
    rope.factor = fields.positive("factor");
    return rope;
  }
  if (type == "llama3") {
    rope.type = RopeConfig::Type::Llama3;
    rope.factor = fields.positive("factor");
    rope.low_freq_factor = fields.positive("low_freq_factor");
    rope.high_freq_factor = fields.positive("high_freq_factor");
    rope.original_max_seq_len = fields.positive("original_max_position_embeddings");
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      throw Error("{}: expected 'high_freq_factor' above 'low_freq_factor', found {} and {}",
                  fields.where(), rope.high_freq_factor, rope.low_freq_factor);
    }
    return rope;
  }
  throw Error("{}: rope type '{}' is not supported (known: default, linear, llama3)",
              fields.where(), printable(type));
}

// Which layers look back only so far. Newer files list a type for each layer; older ones of Qwen
// say from which layer on (and whether at all), Mistral's mean every layer.
std::vector<std::size_t> parse_windows(const Fields& fields, const Config& config) {
  std::vector<std::size_t> windows(config.n_layers, 0);
  const bool qwen = config.model_type == "qwen2" || config.model_type == "qwen3";
  if (config.model_type == "llama") {
    if (fields.has("sliding_window")) {
      throw Error("{}: 'sliding_window' is not supported for model type 'llama'", fields.where());
    }
    return windows;
  }
  const bool used = !qwen || fields.flag_or("use_sliding_window", false);
  const std::size_t window =
      used && fields.has("sliding_window") ? fields.size("sliding_window") : 0;
  if (const Json* types = fields.find("layer_types")) {
    if (!types->is_array() || types->size() != config.n_layers) {
      throw Error("{}: 'layer_types': expected one for each of {} layers, found {}", fields.where(),
                  config.n_layers, describe_json(*types));
    }
    for (std::size_t i = 0; i < config.n_layers; ++i) {
      const std::string& type = json_string((*types)[i], fields.where(), "layer_types");
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
  // 28 is what transformers takes where a Qwen file does not say.
  const std::size_t first =
      !qwen ? 0 : (fields.has("max_window_layers") ? fields.size("max_window_layers", 0) : 28);
  for (std::size_t i = first; i < config.n_layers; ++i) windows[i] = window;
  return windows;
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

void check_family(const Fields& fields, Config& config) {
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

}  // namespace

Config parse_config(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  if (!json.is_object()) {
    throw Error("{}: expected an object, found {}", where, describe_json(json));
  }
  const Fields fields(json, where);
  Config config;
  check_family(fields, config);
  refuse_foreign_arithmetic(fields);

  config.vocab_size = fields.size("vocab_size");
  config.dim = fields.size("hidden_size");
  config.ffn_dim = fields.size("intermediate_size");
  config.n_layers = fields.size("num_hidden_layers", 1, kMaxLayers);
  config.n_heads = fields.size("num_attention_heads");
  config.n_kv_heads = fields.size_or("num_key_value_heads", config.n_heads);
  config.max_seq_len = fields.size("max_position_embeddings");
  config.norm_eps = static_cast<float>(fields.positive_or("rms_norm_eps", 1e-6));
  if (config.n_heads % config.n_kv_heads != 0) {
    throw Error(
        "{}: 'num_attention_heads': expected a multiple of 'num_key_value_heads' {}, "
        "found {}",
        where, config.n_kv_heads, config.n_heads);
  }
  if (!fields.has("head_dim") && config.model_type != "qwen3" && config.dim % config.n_heads != 0) {
    throw Error("{}: 'hidden_size': expected a multiple of 'num_attention_heads' {}, found {}",
                where, config.n_heads, config.dim);
  }
  // Qwen3 is the one family whose default is a fixed number.
  const std::size_t default_head_dim =
      config.model_type == "qwen3" ? 128 : config.dim / config.n_heads;
  config.head_dim = fields.size_or("head_dim", default_head_dim);
  if (config.head_dim == 0 || config.head_dim % 2 != 0) {
    throw Error("{}: head size: expected an even number (RoPE turns pairs), found {}", where,
                config.head_dim);
  }

  config.rope = parse_rope(fields);
  config.windows = parse_windows(fields, config);
  config.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  // Llama's "attention_bias" is for all four projections; Qwen2 always has it on q, k and v.
  const bool attention_bias = fields.flag_or("attention_bias", false);
  config.qkv_bias = config.model_type == "qwen2" || attention_bias;
  config.o_bias = config.model_type != "qwen2" && attention_bias;
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
  if (std::filesystem::exists(generation)) {
    const std::string where = generation.string();
    const Json json = parse_json(read_text_file(generation, kMaxConfigBytes), where);
    if (const Json* ids = find_member(json, "eos_token_id")) {
      config.eos_ids = parse_ids(ids, config, where, "eos_token_id");
    }
  }
  return config;
}

}  // namespace stagecraft
