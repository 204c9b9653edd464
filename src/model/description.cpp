#include "model/description.h"

#include "base/file_kind.h"
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

// Whether parse_config and the layers of the course compute this model. They know no activation
// function but SiLU, and no yarn (architectures/llama_variants.cpp).
bool is_plain_llama(const ConfigFields& fields) {
  return is_llama_family(fields) &&
         parse_activation(fields, "hidden_act", "silu") == ActivationFunction::Silu &&
         !needs_yarn(fields);
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
  if (is_plain_llama(fields)) {
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
