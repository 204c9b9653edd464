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

std::string config_json(const std::filesystem::path& model) {
  if (is_gguf(model)) return gguf_config_json(GgufFile(model));
  if (is_llama2c(model)) return llama2c_config_json(Llama2cHeader::read(model));
  if (is_flm(model)) return flm_config_json(FlmFile(model));
  return read_text_file(model / "config.json", kMaxConfigBytes);
}

Config read_config(const std::filesystem::path& model) {
  if (is_gguf(model)) return gguf_config(GgufFile(model));
  if (is_llama2c(model)) return llama2c_config(model);
  if (is_flm(model)) return flm_config(FlmFile(model));
  const std::filesystem::path path = model / "config.json";
  Config config = parse_config(read_text_file(path, kMaxConfigBytes), path.string());

  // generation_config.json, where there is one, has the last word on what ends a text.
  const std::filesystem::path generation = model / "generation_config.json";
  std::error_code ignored;
  if (std::filesystem::symlink_status(generation, ignored).type() !=
      std::filesystem::file_type::not_found) {
    const std::string where = generation.string();
    const Json json = parse_json_object(read_text_file(generation, kMaxConfigBytes), where);
    const ConfigFields fields(json, where);
    if (fields.has("eos_token_id")) config.eos_ids = parse_eos_ids(fields, config.vocab_size);
  }
  return config;
}

}  // namespace stagecraft
