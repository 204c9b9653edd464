#include "convert/sources.h"

#include "base/json.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"
#include "model/config.h"
#include "text/flm_tokenizer.h"
#include "text/json_document.h"
#include "text/tokenizer_source.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxConfigBytes = 16u << 20;

// One template, or of several by name the default one.
std::string template_in(const Json& json, const std::string& where) {
  const Json* found = find_member(json, "chat_template");
  if (found == nullptr) return "";
  if (!found->is_array()) return json_string(*found, where, "chat_template");
  for (const Json& entry : *found) {
    const Json* name = find_member(entry, "name");
    const Json* text = find_member(entry, "template");
    if (name != nullptr && *name == "default" && text != nullptr) {
      return json_string(*text, where, "template");
    }
  }
  return "";
}

}  // namespace

std::string source_chat_template(const fs::path& model) {
  std::error_code ignored;
  if (is_gguf(model)) {
    return std::string(GgufFile(model).metadata().text_or("tokenizer.chat_template", ""));
  }
  if (is_flm(model)) return flm_chat_template(FlmFile(model));
  if (!fs::is_directory(model, ignored)) return "";
  const fs::path file = model / "chat_template.jinja";
  if (fs::exists(file, ignored)) return read_text_file(file, kMaxConfigBytes);
  const fs::path config = model / "tokenizer_config.json";
  if (!fs::exists(config, ignored)) return "";
  return template_in(parse_json_object(read_text_file(config, kMaxConfigBytes), config.string()),
                     config.string());
}

SourceTokenizer source_tokenizer(const Conversion& conversion) {
  const bool named = !conversion.tokenizer.empty();
  const fs::path& path = named ? conversion.tokenizer : conversion.model;
  if (is_flm(path)) {
    throw Error(
        "{}: its vocabulary has no scores and no merges, so nobody else can read it; name "
        "the model's own: --tokenizer PATH, or --without-tokenizer",
        path.string());
  }
  SourceTokenizer source;
  source.where = path.string();
  if (auto derived = derived_tokenizer_json(path)) {
    source.json = std::move(*derived);
  } else {
    const fs::path file = fs::is_directory(path) ? path / "tokenizer.json" : path;
    if (file.extension() == ".model" || !fs::exists(file)) {
      throw Error(
          "{}: expected a tokenizer.json, found none (--without-tokenizer writes the "
          "weights alone)",
          path.string());
    }
    source.json = read_text_file(file, JsonDocument::kMaxBytes);
    source.where = file.string();
  }
  source.chat_template = source_chat_template(conversion.model);
  if (source.chat_template.empty() && named) source.chat_template = source_chat_template(path);
  return source;
}

std::string model_name(const fs::path& model) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model, ignored).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  return is_model_file(model) ? last.stem().string() : last.filename().string();
}

void refuse_rope_factors(const fs::path& model) {
  if (read_config(model).rope.factors.empty()) return;
  throw Error("{}: tensor 'rope_freqs.weight': config.json has no words for factors of RoPE",
              model.string());
}

}  // namespace stagecraft
