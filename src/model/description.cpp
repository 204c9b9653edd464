#include "model/description.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file_kind.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "model/architectures/architectures.h"
#include "model/architectures/llama.h"
#include "model/config_extensions.h"
#include "model/config_file.h"
#include "model/decoder_fields.h"
#include "model/family.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

bool has_other_activation(const ConfigFields& fields) {
  const std::string name = fields.text_or("hidden_act", "silu");
  return name != "silu" && name != "swish";
}

// The layers of the course and parse_config support no activation function but SiLU, and no yarn: a
// model that has one of them has a plan, but no Config.
Plan llama_beyond_the_course(const NamedText& text, const ConfigFields& fields) {
  auto simpler = json_value(text.text);
  simpler["hidden_act"] = "silu";
  simpler.erase("rope_scaling");
  simpler.erase("rope_parameters");
  Config config = parse_config(json_text(simpler), text.where);
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

void refuse_stored_fields(const ConfigFields& fields) {
  for (const JsonNode value : fields.object().members()) {
    if (value.key().starts_with(kStoredFields)) refuse_config_field(fields, value);
  }
}

// The end tokens of generation_config.json, which take precedence over config.json; nullopt if the
// model has no such file, or the file has no such field.
std::optional<std::vector<TokenId>> generation_eos_ids(const ModelSource& model,
                                                       std::size_t vocab_size) {
  const std::filesystem::path path = model.path() / "generation_config.json";
  if (!is_there(path)) return std::nullopt;
  const std::string where = path.string();
  const Json json = parse_json_object(read_text_file(path, kMaxConfigBytes), where);
  const ConfigFields fields(json, where);
  if (!fields.has("eos_token_id")) return std::nullopt;
  return parse_eos_ids(fields, vocab_size);
}

ModelDescription describe(const ModelSource& model, const NamedText& text) {
  const Json json = parse_json_object(text.text, text.where);
  const ConfigFields fields(json, text.where);
  if (!model.is_file()) refuse_stored_fields(fields);
  ModelDescription description;
  if (is_llama_family(fields) && (has_other_activation(fields) || needs_yarn(fields))) {
    description.plan = llama_beyond_the_course(text, fields);
  } else if (is_llama_family(fields)) {
    description.config = read_config(model, text);
    description.plan = llama_plan(*description.config);
  } else {
    description.plan = architecture_of(fields).plan(fields);
  }
  if (const auto eos = generation_eos_ids(model, description.plan.vocab_size)) {
    description.plan.eos_ids = *eos;
    if (description.config) description.config->eos_ids = *eos;
  }
  return description;
}

}  // namespace

ModelDescription describe_model(const ModelSource& model) {
  const NamedText text = config_text(model);
  const ModelFile* file = model.file();
  if (file == nullptr) return describe(model, text);
  try {
    return describe(model, text);
  } catch (const Error& error) {
    throw Error("{}", file->with_own_names(error.what()));
  }
}

}  // namespace stagecraft
