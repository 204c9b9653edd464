#include "convert/sources.h"

#include <algorithm>

#include "base/json.h"
#include "base/json_text.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "model/family.h"
#include "text/chat_template_source.h"
#include "text/tokenizer_source.h"

namespace stagecraft {

namespace fs = std::filesystem;

SourceTokenizer source_tokenizer(const Conversion& conversion) {
  const ModelSource from = conversion.tokenizer.value_or(conversion.model);
  const fs::path& path = from.path();
  if (from.flm()) {
    throw Error(
        "{}: its vocabulary has no scores and no merges, so nobody else can read it; name "
        "the model's own: --tokenizer PATH, or --without-tokenizer",
        path.string());
  }
  SourceTokenizer source;
  source.where = path.string();
  if (const auto description = describe_tokenizer(from)) {
    source.json = json_text(description->root());
  } else {
    const fs::path file = fs::is_directory(path) ? path / "tokenizer.json" : path;
    if (file.extension() == ".model" || !fs::exists(file)) {
      throw Error(
          "{}: expected a tokenizer.json, found none (--without-tokenizer writes the "
          "weights alone)",
          path.string());
    }
    source.json = read_text_file(file, Json::kMaxBytes);
    source.where = file.string();
  }
  source.chat_template = read_chat_template(conversion.model).text;
  if (source.chat_template.empty() && conversion.tokenizer) {
    source.chat_template = read_chat_template(from).text;
  }
  return source;
}

std::string model_name(const ModelSource& model) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model.path(), ignored).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  return model.is_file() ? last.stem().string() : last.filename().string();
}

Config llama_config(const ModelDescription& description, const ModelSource& model,
                    std::string_view format) {
  if (description.config) return *description.config;
  const auto types = llama_family_types();
  if (std::ranges::find(types, description.plan.model_type) != types.end()) {
    throw Error("{}: 'hidden_act': expected 'silu' to write {}, found another", model.name(),
                format);
  }
  throw Error("{}: 'model_type': expected llama, mistral, qwen2 or qwen3 to write {}, found '{}'",
              model.name(), format, description.plan.model_type);
}

void refuse_rope_factors(const ModelDescription& description, const ModelSource& model) {
  if (!description.config || description.config->rope.factors.empty()) return;
  throw Error("{}: tensor 'rope_freqs.weight': config.json has no words for factors of RoPE",
              model.name());
}

}  // namespace stagecraft
