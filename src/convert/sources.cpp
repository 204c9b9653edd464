#include "convert/sources.h"

#include <algorithm>
#include <utility>

#include "base/alternatives.h"
#include "base/mapped_file.h"
#include "checkpoint/checkpoint.h"
#include "formats/flm/model.h"
#include "model/config.h"
#include "model/family.h"
#include "text/chat_template_source.h"
#include "text/tokenizer_source.h"

namespace stagecraft {

namespace fs = std::filesystem;

namespace {

SourceTokenizer with_chat(const Conversion& conversion, Json description, std::string where) {
  Tokenizer tokenizer = Tokenizer::read(description);
  const ModelSource& from = conversion.tokenizer ? *conversion.tokenizer : conversion.model;
  SpecialTokens special = read_chat_template(from, tokenizer).special_tokens;
  // A tokenizer may be a single file, without a tokenizer_config.json.
  if (special.empty()) special = read_chat_template(conversion.model, tokenizer).special_tokens;
  ChatTemplateSource chat = read_chat_template(source_of_template(conversion));
  return {std::move(description), std::move(tokenizer), std::move(where),
          std::move(chat.text),   std::move(special),   std::move(chat.tools_text)};
}

}  // namespace

const ModelSource& source_of_template(const Conversion& conversion) {
  const bool has_own = !conversion.tokenizer || !read_chat_template(conversion.model).text.empty();
  return has_own ? conversion.model : *conversion.tokenizer;
}

SourceTokenizer source_tokenizer(const Conversion& conversion) {
  const ModelSource from = conversion.tokenizer.value_or(conversion.model);
  const fs::path& path = from.path();
  if (dynamic_cast<const FlmModel*>(from.file()) != nullptr) {
    throw Error(
        "{}: its vocabulary lacks the scores or merges that other programs need; name the "
        "model's own tokenizer: --tokenizer PATH, or use --without-tokenizer",
        path.string());
  }
  if (auto description = describe_tokenizer(from)) {
    return with_chat(conversion, std::move(*description), path.string());
  }
  std::error_code problem;
  const fs::path file = fs::is_directory(path, problem) ? path / "tokenizer.json" : path;
  const bool exists = fs::exists(file, problem);
  if (problem) {
    throw Error("{}: cannot be opened: {}", printable(file.string(), 1000), problem.message());
  }
  if (file.extension() == ".model" || !exists) {
    throw Error(
        "{}: expected a tokenizer.json, found none (--without-tokenizer writes only "
        "the weights)",
        path.string());
  }
  return with_chat(conversion, Json(read_text_file(file, Json::kMaxBytes), file.string()),
                   file.string());
}

void check_tokenizer(const Conversion& conversion, std::size_t vocab_size, const Plan& plan) {
  if (!conversion.tokenizer) return;
  refuse_other_tokenizer(*conversion.tokenizer, vocab_size, conversion.model, plan.vocab_size);
}

void note_no_end(const Conversion& conversion, const Plan& plan, Converted& result) {
  if (!conversion.with_tokenizer || !plan.eos_ids.empty()) return;
  result.notes.emplace_back(
      "no token ends a text of this model: its texts go on until the context is full");
}

Config llama_config(const ModelDescription& description, const ModelSource& model,
                    std::string_view format) {
  if (description.config) return *description.config;
  const auto types = llama_family_types();
  if (std::ranges::find(types, description.plan.model_type) != types.end()) {
    const bool has_gelu = std::ranges::any_of(description.plan.steps, [](const Step& step) {
      const auto* activate = std::get_if<ActivateStep>(&step.kind);
      return activate != nullptr && activate->function != ActivateStep::Function::Silu;
    });
    if (has_gelu) {
      throw Error(
          "{}: 'hidden_act': expected 'silu' to write {}, found another activation function",
          model.name(), format);
    }
    throw Error("{}: rope type: expected default, linear or llama3 to write {}, found 'yarn'",
                model.name(), format);
  }
  throw Error("{}: 'model_type': expected {} to write {}, found '{}'", model.name(),
              alternatives(types), format, description.plan.model_type);
}

}  // namespace stagecraft
