#include "model/config_file.h"

#include "model/flm_config.h"
#include "model/gguf_config.h"
#include "model/gguf_rope.h"
#include "model/llama2c_config.h"

namespace stagecraft {

ConfigText config_text(const ModelSource& model) {
  if (const auto file = model.gguf()) return {gguf_config_json(*file), model.name() + ": metadata"};
  if (const auto file = model.llama2c()) {
    return {llama2c_config_json(file->header()), model.name() + ": header"};
  }
  if (const auto file = model.flm()) return {flm_config_json(*file), model.name() + ": pairs"};
  return {model.config_json(), (model.path() / "config.json").string()};
}

Config read_config(const ModelSource& model) { return read_config(model, config_text(model)); }

Config read_config(const ModelSource& model, const ConfigText& text) {
  Config config = parse_config(text.json, text.where);
  if (const auto file = model.gguf()) take_rope_factors(*file, config);
  return config;
}

}  // namespace stagecraft
