#include "convert/sources.h"

#include <algorithm>

#include "base/json.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/flm.h"
#include "model/config.h"
#include "model/family.h"
#include "text/chat_template_source.h"
#include "text/tokenizer_source.h"

namespace stagecraft {

namespace fs = std::filesystem;

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
    source.json = read_text_file(file, Json::kMaxBytes);
    source.where = file.string();
  }
  source.chat_template = read_chat_template(conversion.model).text;
  if (source.chat_template.empty() && named) source.chat_template = read_chat_template(path).text;
  return source;
}

std::string model_name(const fs::path& model) {
  std::error_code ignored;
  const fs::path whole = fs::absolute(model, ignored).lexically_normal();
  const fs::path last = whole.has_filename() ? whole : whole.parent_path();
  return is_model_file(model) ? last.stem().string() : last.filename().string();
}

Config llama_config(const ModelDescription& description, const fs::path& model,
                    std::string_view format) {
  if (description.config) return *description.config;
  const auto types = llama_family_types();
  if (std::ranges::find(types, description.plan.model_type) != types.end()) {
    throw Error("{}: 'hidden_act': expected 'silu' to write {}, found another", model.string(),
                format);
  }
  throw Error("{}: 'model_type': expected llama, mistral, qwen2 or qwen3 to write {}, found '{}'",
              model.string(), format, description.plan.model_type);
}

void refuse_rope_factors(const fs::path& model) {
  const ModelDescription description = describe_model(model);
  if (!description.config || description.config->rope.factors.empty()) return;
  throw Error("{}: tensor 'rope_freqs.weight': config.json has no words for factors of RoPE",
              model.string());
}

}  // namespace stagecraft
