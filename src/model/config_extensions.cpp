#include "model/config_extensions.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace stagecraft {
namespace {

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
};

// What transformers takes where a file does not say. ("sliding_window": null says: none.)
constexpr std::size_t kDefaultWindow = 4096;
constexpr std::size_t kDefaultMaxWindowLayers = 28;

bool changes_the_result(std::string_view key, const Json& value) {
  if (key == "rope_scaling" || key == "rope_parameters") return false;  // honoured, see parse_rope
  if (value.is_null() || value == false) return false;
  if ((value.is_array() || value.is_object()) && value.empty()) return false;
  return std::any_of(kForeignArithmetic.begin(), kForeignArithmetic.end(),
                     [&](const auto& foreign) {
                       const bool named = key.find(foreign.part) != std::string_view::npos;
                       return named && !(value.is_number() && value == foreign.neutral);
                     });
}

}  // namespace

void refuse_foreign_arithmetic(const ConfigFields& fields) {
  for (const auto& [key, value] : fields.object().items()) {
    if (changes_the_result(key, value)) {
      throw Error("{}: '{}': {} is not supported", fields.where(), printable(key),
                  describe_json(value));
    }
  }
}

RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len) {
  RopeConfig rope;
  rope.theta = top.positive_or("rope_theta", 10'000.0);
  const Json* scaling = top.find("rope_scaling");
  const bool older = scaling != nullptr && !scaling->empty();
  const std::string_view key = older ? "rope_scaling" : "rope_parameters";
  const Json* object = top.find(key);
  if (object == nullptr) return rope;
  if (!object->is_object()) {
    throw Error("{}: '{}': expected an object, found {}", top.where(), key, describe_json(*object));
  }
  const ConfigFields fields(*object, fmt::format("{}: {}", top.where(), key));
  for (const auto& [name, value] : object->items()) {
    if (!value.is_structured()) continue;
    throw Error("{}: '{}': {} is not supported", fields.where(), printable(name),
                describe_json(value));  // other parameters for each type of layer, say
  }
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
    // Beside the object it goes before inside; nowhere, the whole context is the original one.
    constexpr std::string_view kOriginal = "original_max_position_embeddings";
    rope.original_max_seq_len =
        top.positive_or(kOriginal, fields.positive_or(kOriginal, static_cast<double>(max_seq_len)));
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
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config) {
  std::vector<std::size_t> windows(config.n_layers, 0);
  const bool qwen = config.model_type == "qwen2" || config.model_type == "qwen3";
  if (config.model_type == "llama") {
    if (fields.has("sliding_window")) {
      throw Error("{}: 'sliding_window' is not supported for model type 'llama'", fields.where());
    }
    return windows;
  }
  const bool used = !qwen || fields.flag_or("use_sliding_window", false);
  const bool none = !used || fields.is_null("sliding_window");
  const std::size_t window = none ? 0 : fields.size_or("sliding_window", kDefaultWindow);
  if (const Json* types = fields.find("layer_types")) {
    if (!qwen) {
      throw Error("{}: 'layer_types' is not supported for model type '{}'", fields.where(),
                  config.model_type);
    }
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
  const std::size_t first =
      qwen ? fields.size_or("max_window_layers", kDefaultMaxWindowLayers, 0) : 0;
  for (std::size_t i = first; i < config.n_layers; ++i) windows[i] = window;
  return windows;
}

}  // namespace stagecraft
