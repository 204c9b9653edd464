#include "model/description.h"

#include "model/architectures/architectures.h"
#include "model/architectures/llama.h"
#include "model/config_extensions.h"
#include "model/family.h"

namespace stagecraft {

ModelDescription describe_model(const std::filesystem::path& model) {
  const ConfigText text = config_text(model);
  const Json json = parse_json_object(text.json, text.where);
  const ConfigFields fields(json, text.where);
  ModelDescription description;
  if (is_llama_family(fields)) {
    description.config = read_config(model);
    description.plan = llama_plan(*description.config);
    return description;
  }
  description.plan = architecture_of(fields).plan(fields);
  if (const auto eos = generation_eos_ids(model, description.plan.vocab_size)) {
    description.plan.eos_ids = *eos;
  }
  return description;
}

}  // namespace stagecraft
