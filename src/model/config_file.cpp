#include "model/config_file.h"

namespace stagecraft {

NamedText config_text(const ModelSource& model) {
  if (const ModelFile* file = model.file()) return file->config();
  return {model.config_json(), (model.path() / "config.json").string()};
}

Config read_config(const ModelSource& model) { return read_config(model, config_text(model)); }

Config read_config(const ModelSource& model, const NamedText& text) {
  Config config = parse_config(text.text, text.where);
  if (model.is_file()) {
    const Json json = parse_json_object(text.text, text.where);
    take_rope_factors(ConfigFields(json, text.where), config);
  }
  return config;
}

void take_rope_factors(const ConfigFields& fields, Config& config) {
  const std::optional<JsonNode> factors = fields.object().find(kRopeFactors);
  if (!factors) return;
  for (const JsonNode factor : factors->elements()) {
    config.rope.factors.push_back(static_cast<float>(factor.number()));
  }
}

}  // namespace stagecraft
