#include "model/config_extensions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "checkpoint/quantization.h"
#include "model/decoder_fields.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

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

}  // namespace

void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::initializer_list<std::string_view> honoured) {
  parse_quantization(fields.object(), fields.where());  // throws if Checkpoint does not support it
  for (const JsonNode value : fields.object().members()) {
    const std::string_view key = value.key();
    if (std::ranges::find(honoured, key) != honoured.end()) continue;
    if (changes_the_result(key, value)) refuse_config_field(fields, value);
  }
}

RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured) {
  return parse_rope(top, rope_object(top), max_seq_len, parse_theta(top, "rope_theta", theta),
                    honoured);
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
