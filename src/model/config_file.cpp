// read_config: the files of a model that make its Config.
#include "base/mapped_file.h"
#include "model/config.h"
#include "model/config_extensions.h"
#include "model/flm_config.h"
#include "model/gguf_config.h"
#include "model/llama2c_config.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxConfigBytes = 4u << 20;

}  // namespace

ConfigText config_text(const std::filesystem::path& model) {
  if (is_gguf(model)) return {gguf_config_json(GgufFile(model)), model.string() + ": metadata"};
  if (is_llama2c(model)) {
    return {llama2c_config_json(Llama2cHeader::read(model)), model.string() + ": header"};
  }
  if (is_flm(model)) return {flm_config_json(FlmFile(model)), model.string() + ": pairs"};
  const std::filesystem::path path = model / "config.json";
  return {read_text_file(path, kMaxConfigBytes), path.string()};
}

std::optional<std::vector<TokenId>> generation_eos_ids(const std::filesystem::path& model,
                                                       std::size_t vocab_size) {
  const std::filesystem::path path = model / "generation_config.json";
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

Config read_config(const std::filesystem::path& model) {
  if (is_gguf(model)) return gguf_config(GgufFile(model));
  if (is_llama2c(model)) return llama2c_config(model);
  if (is_flm(model)) return flm_config(FlmFile(model));
  const ConfigText text = config_text(model);
  Config config = parse_config(text.json, text.where);
  if (const auto eos = generation_eos_ids(model, config.vocab_size)) config.eos_ids = *eos;
  return config;
}

}  // namespace stagecraft
