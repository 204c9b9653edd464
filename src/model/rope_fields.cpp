#include "model/rope_fields.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "model/config_extensions.h"
#include "model/decoder_fields.h"

namespace stagecraft {
namespace {

// With these bounds, frequencies stay between 0 and 1 radian per position and can be represented in
// f32.
constexpr double kMinTheta = 1.0, kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;
constexpr double kMinBand = 1e-3;

constexpr std::string_view kOriginalContext = "original_max_position_embeddings";

constexpr std::string_view kTypeNames[] = {"default", "linear", "llama3", "yarn"};  // as Type

// nullopt if there is no such type.
std::optional<RopeConfig::Type> find_type(const std::string& name, bool yarn) {
  for (const std::string_view& known : kTypeNames) {
    const auto type = static_cast<RopeConfig::Type>(&known - kTypeNames);
    if (known == name && (yarn || type != RopeConfig::Type::Yarn)) return type;
  }
  return std::nullopt;
}

// fields: the object of RoPE
std::string type_name(const ConfigFields& fields) {
  return fields.text_or("rope_type", fields.text_or("type", "default"));
}

RopeConfig::Type rope_type(const ConfigFields& fields, bool yarn) {
  const std::string name = type_name(fields);
  if (const auto type = find_type(name, yarn)) return *type;
  throw Error("{}: rope type: expected default, linear{}, found '{}'", fields.where(),
              yarn ? ", llama3 or yarn" : " or llama3", printable(name));
}

// The default of transformers, which grows with the factor of the context.
double yarn_attention_factor(const ConfigFields& fields, double factor) {
  const double one = fields.number_or("mscale", 0.0, 0.0, kMaxFactor);
  const double all = fields.number_or("mscale_all_dim", 0.0, 0.0, kMaxFactor);
  const double computed = one != 0.0 && all != 0.0
                              ? yarn_growth(factor, one) / yarn_growth(factor, all)
                              : yarn_growth(factor);
  return fields.number_or(kAttentionFactor, computed, kMinBand, kMaxFactor);
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

// The last two are ignored, as in transformers: "attn_factor" of DeepSeek-R1-0528-Qwen3-8B, and
// "finetuned" of the models of Yarn's authors.
constexpr std::array<std::string_view, 8> kYarnFields = {
    kAttentionFactor, "beta_fast", "beta_slow",   "mscale",
    "mscale_all_dim", "truncate",  "attn_factor", "finetuned"};

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
    if (known || value.is_null() ||
        (name == "partial_rotary_factor" && value.is_number() && value.number() == 1.0))
      continue;
    refuse_config_field(fields, value);
  }
}

}  // namespace

double yarn_growth(double factor, double weight) {
  return factor <= 1.0 ? 1.0 : 0.1 * weight * std::log(factor) + 1.0;
}

double parse_theta(const ConfigFields& fields, std::string_view key, double default_value) {
  return fields.number_or(key, default_value, kMinTheta, kMaxTheta);
}

std::optional<ConfigFields> rope_object(const ConfigFields& fields) {
  const std::optional<JsonNode> scaling = fields.find("rope_scaling");
  const bool older = scaling && (scaling->size() != 0 || !scaling->is_object());
  return fields.object_of(older ? "rope_scaling" : "rope_parameters");
}

bool needs_yarn(const ConfigFields& fields) {
  const std::optional<ConfigFields> object = rope_object(fields);
  return object && !find_type(type_name(*object), false);
}

RopeConfig parse_rope(const ConfigFields& top, const std::optional<ConfigFields>& object,
                      std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured) {
  RopeConfig rope;
  rope.theta = theta;
  if (!object) return rope;
  const ConfigFields& fields = *object;
  const bool yarn = std::ranges::find(honoured, kAttentionFactor) != honoured.end();
  rope.type = rope_type(fields, yarn);
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
              kTypeNames[static_cast<std::size_t>(rope.type)]);
}

PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names) {
  constexpr std::string_view kFactor = "partial_rotary_factor";
  std::vector<std::string_view> honoured(names.honoured.begin(), names.honoured.end());
  honoured.push_back(kFactor);
  constexpr double kDefaultTheta = 10'000.0;
  if (names.theta != "rope_theta" && fields.has("rope_theta")) {
    throw Error("{}: 'rope_theta': expected '{}' instead, found {}", fields.where(), names.theta,
                fields.find("rope_theta")->describe());
  }
  PartialRope partial;
  const double theta = parse_theta(fields, names.theta, kDefaultTheta);
  partial.rope = parse_rope(fields, max_seq_len, theta, honoured);
  refuse_stretched_rope(fields, partial.rope);
  double factor = fields.number_or(names.factor, names.default_value, 0.0, 1.0);
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

RopeConfig parse_rope_of(const ConfigFields& fields, std::size_t max_seq_len,
                         const RopeOfKind& kind) {
  std::optional<ConfigFields> object;
  if (!kind.slides) object = fields.object_of("rope_scaling");
  const auto kinds = fields.object_of("rope_parameters");
  if (kinds && kinds->object().size() != 0) {
    for (const JsonNode member : kinds->object().members()) {
      if (member.key() == "full_attention" || member.key() == "sliding_attention") continue;
      throw Error("{}: expected 'full_attention' and 'sliding_attention', found '{}'",
                  kinds->where(), printable(member.key()));
    }
    if (object && object->object().size() != 0) {
      throw Error("{}: 'rope_scaling': expected none beside 'rope_parameters', found {}",
                  fields.where(), fields.find("rope_scaling")->describe());
    }
    object = kinds->object_of(kind.slides ? "sliding_attention" : "full_attention");
  }
  return parse_rope(fields, object, max_seq_len, parse_theta(fields, kind.theta_key, kind.theta),
                    kind.honoured);
}

}  // namespace stagecraft
