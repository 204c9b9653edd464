// Models of the Llama family with an activation function other than SiLU, or with yarn. The layers
// of the course and parse_config support neither, so such a model has a plan, but no Config.
#include <algorithm>
#include <array>

#include "base/json_text.h"
#include "model/architectures/architectures.h"
#include "model/architectures/llama.h"
#include "model/config_extensions.h"
#include "model/config_file.h"
#include "model/decoder_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

// The text of a config.json that parse_config accepts: SiLU, and the default RoPE.
std::string plain_config(const ConfigFields& fields) {
  constexpr std::array<std::string_view, 3> kDropped = {"hidden_act", "rope_scaling",
                                                        "rope_parameters"};
  std::string text;
  for (const JsonNode member : fields.object().members()) {
    if (std::ranges::find(kDropped, member.key()) != kDropped.end()) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "{" : ",", json_quoted(member.key()),
                        json_text(member));
  }
  return text + "}";
}

Plan llama_variant_plan(const ConfigFields& fields) {
  Config config = parse_config(plain_config(fields), fields.where());
  config.rope = parse_rope(fields, config.max_seq_len, 10'000.0, kYarn);
  take_rope_factors(fields, config);
  // Qwen's files keep the length for which the model was trained; users add "rope_scaling".
  if (config.rope.type == RopeConfig::Type::Yarn) {
    const double stretched = std::min(config.rope.original_max_seq_len * config.rope.factor,
                                      static_cast<double>(kMaxDimension));
    config.max_seq_len = std::max(config.max_seq_len, static_cast<std::size_t>(stretched));
  }
  return llama_plan(config, parse_activation(fields, "hidden_act", "silu"));
}

constexpr std::string_view kLlamaVariantTypes[] = {"llama", "mistral", "qwen2", "qwen3"};

}  // namespace

extern const Architecture architecture_llama_variants;
constinit const Architecture architecture_llama_variants = {kLlamaVariantTypes, llama_variant_plan};

}  // namespace stagecraft
