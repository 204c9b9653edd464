#include "model/config_file.h"

#include "base/mapped_file.h"
#include "model/config_extensions.h"
#include "model/flm_config.h"
#include "model/gguf_config.h"
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

std::optional<std::vector<TokenId>> generation_eos_ids(const ModelSource& model,
                                                       std::size_t vocab_size) {
  const std::filesystem::path path = model.path() / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() ==
      std::filesystem::file_type::not_found) {
    return std::nullopt;
  }
  const std::string where = path.string();
  const Json json = parse_json_object(read_text_file(path, kMaxConfigBytes), where);
  const ConfigFields fields(json, where);
  if (!fields.has("eos_token_id")) return std::nullopt;
  return parse_eos_ids(fields, vocab_size);
}

Config read_config(const ModelSource& model) { return read_config(model, config_text(model)); }

Config read_config(const ModelSource& model, const ConfigText& text) {
  Config config = parse_config(text.json, text.where);
  if (const auto file = model.gguf()) take_rope_factors(*file, config);
  if (const auto eos = generation_eos_ids(model, config.vocab_size)) config.eos_ids = *eos;
  return config;
}

}  // namespace stagecraft
