#include "text/chat_template_source.h"

#include <nlohmann/json.hpp>

#include "base/file_kind.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "base/utf8.h"
#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "text/formats/flm_tokenizer.h"
#include "text/jinja/template.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxTokenizerConfigBytes = 16u << 20;
constexpr const char* kSpecialTokens[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                          "pad_token", "cls_token", "mask_token"};

// A special token is a string, or an object with its "content".
void add_special_tokens(JsonNode config, const std::string& where, ChatTemplateSource& source) {
  for (const char* name : kSpecialTokens) {
    std::optional<JsonNode> value = config.find(name);
    if (value && value->is_object()) value = value->find("content");
    if (!value) continue;
    source.special_tokens.emplace_back(name, json_string(*value, where, name));
  }
}

// One template, or an array of {"name", "template"}.
std::string template_of(JsonNode node, const std::string& where) {
  if (!node.is_array()) return json_string(node, where, "chat_template");
  std::string names;
  for (const JsonNode entry : node.elements()) {
    const bool named = entry.is_object() && entry.find("name") && entry.find("template");
    if (!named) {
      throw Error("{}: 'chat_template': expected a name and a template in each entry, found {}",
                  where, entry.describe());
    }
    const std::string said = json_string(entry.at("name"), where, "name");
    if (said == "default") return json_string(entry.at("template"), where, "template");
    names += (names.empty() ? "" : ", ") + said;
  }
  throw Error("{}: 'chat_template': expected a template named 'default', found {}", where,
              names.empty() ? "none" : printable(names));
}

void add_special_tokens(const GgufMetadata& metadata, const Tokenizer& tokenizer,
                        ChatTemplateSource& source) {
  for (const auto& [name, key] : {std::pair{"bos_token", "tokenizer.ggml.bos_token_id"},
                                  {"eos_token", "tokenizer.ggml.eos_token_id"},
                                  {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                  {"pad_token", "tokenizer.ggml.padding_token_id"}}) {
    const auto id = metadata.find_token_id(key, SIZE_MAX);
    // llama.cpp ignores ids outside of the vocabulary, too.
    if (!id || *id >= tokenizer.vocab_size()) continue;
    source.special_tokens.emplace_back(name, tokenizer.token_of(static_cast<TokenId>(*id)));
  }
}

ChatTemplateSource of_gguf(const GgufMetadata& metadata, const fs::path& file) {
  constexpr std::string_view kTemplate = "tokenizer.chat_template";
  return {std::string(metadata.text_or(kTemplate, "")),
          file.string() + ": " + std::string(kTemplate),
          {}};
}

ChatTemplateSource of_folder(const fs::path& model) {
  ChatTemplateSource source;
  const fs::path config = model / "tokenizer_config.json";
  if (is_there(config)) {
    const Json json =
        parse_json_object(read_text_file(config, kMaxTokenizerConfigBytes), config.string());
    add_special_tokens(json.root(), config.string(), source);
    if (const auto found = json.root().find("chat_template")) {
      source.where = config.string() + ": chat_template";
      source.text = template_of(*found, config.string());
    }
  }
  const fs::path file = model / "chat_template.jinja";
  if (is_there(file)) {
    source.where = file.string();
    source.text = read_template_file(file);
  }
  return source;
}

ChatTemplateSource checked(ChatTemplateSource source) {
  check_utf8(source.where, source.text);
  return source;
}

}  // namespace

std::string read_template_file(const fs::path& file) {
  std::string text = read_text_file(file, jinja::Template::kMaxBytes);
  if (text.empty()) throw Error("{}: expected a template, found nothing", file.string());
  if (nlohmann::json::accept(text)) {  // tokenizer_config.json contains a template, but is none
    throw Error("{}: expected a template, found JSON", file.string());
  }
  return text;
}

ChatTemplateSource read_chat_template(const ModelSource& model, const Tokenizer& tokenizer) {
  ChatTemplateSource source = read_chat_template(model);
  if (const auto file = model.gguf()) add_special_tokens(file->metadata(), tokenizer, source);
  return source;
}

ChatTemplateSource read_chat_template(const ModelSource& model) {
  if (const auto file = model.gguf()) return checked(of_gguf(file->metadata(), model.path()));
  if (const auto file = model.flm()) {
    return checked({flm_chat_template(*file), model.name() + ": user_role and others", {}});
  }
  return checked(of_folder(model.path()));
}

}  // namespace stagecraft
