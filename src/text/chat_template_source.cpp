#include "text/chat_template_source.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/file_kind.h"
#include "base/json.h"
#include "base/utf8.h"
#include "checkpoint/model_file.h"
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
void add_templates(JsonNode node, const std::string& file, ChatTemplateSource& source) {
  source.where = file + ": chat_template";
  if (!node.is_array()) {
    source.text = json_string(node, file, "chat_template");
    return;
  }
  std::string names;
  bool found = false;
  for (const JsonNode entry : node.elements()) {
    const bool named = entry.is_object() && entry.find("name") && entry.find("template");
    if (!named) {
      throw Error("{}: 'chat_template': expected a name and a template in each entry, found {}",
                  file, entry.describe());
    }
    const std::string name = json_string(entry.at("name"), file, "name");
    names += (names.empty() ? "" : ", ") + name;
    if (name != "default" && name != kToolUse) continue;
    found = true;
    std::string text = json_string(entry.at("template"), file, "template");
    (name == "default" ? source.text : source.tools_text) = std::move(text);
  }
  if (!found) {
    throw Error("{}: 'chat_template': expected a template named 'default' or '{}', found {}", file,
                kToolUse, names.empty() ? "none" : printable(names));
  }
  source.tools_where = fmt::format("{}, {}", source.where, kToolUse);
}

void add_special_tokens(const ModelFile& file, const Tokenizer& tokenizer,
                        ChatTemplateSource& source) {
  for (const auto& [name, id] : file.special_token_ids()) {
    // llama.cpp ignores ids outside of the vocabulary, too.
    if (id >= tokenizer.vocab_size()) continue;
    source.special_tokens.emplace_back(name, tokenizer.token_of(static_cast<TokenId>(id)));
  }
}

ChatTemplateSource of_file(const ModelFile& file) {
  NamedText chat = file.chat_template(), tools = file.tools_template();
  return {std::move(chat.text),
          std::move(chat.where),
          {},
          std::move(tools.text),
          std::move(tools.where)};
}

ChatTemplateSource of_folder(const fs::path& model) {
  ChatTemplateSource source;
  const fs::path config = model / "tokenizer_config.json";
  if (is_there(config)) {
    const Json json =
        parse_json_object(read_text_file(config, kMaxTokenizerConfigBytes), config.string());
    add_special_tokens(json.root(), config.string(), source);
    if (const auto found = json.root().find("chat_template")) {
      add_templates(*found, config.string(), source);
    }
  }
  const fs::path file = model / kChatTemplateFile;
  if (is_there(file)) {  // it replaces all templates of tokenizer_config.json
    source.where = file.string();
    source.text = read_template_file(file);
    source.tools_text = {};
  }
  const fs::path tools = model / kToolTemplateFile;
  if (is_there(tools)) {
    source.tools_where = tools.string();
    source.tools_text = read_template_file(tools);
  }
  return source;
}

ChatTemplateSource checked(ChatTemplateSource source) {
  check_utf8(source.where, source.text);
  check_utf8(source.tools_where, source.tools_text);
  if (source.text.empty() && !source.tools_text.empty()) {
    source.where = std::move(source.tools_where);
    source.text = std::exchange(source.tools_text, {});
  }
  return source;
}

}  // namespace

std::string read_template_file(const fs::path& file, Pipes pipes) {
  std::string text = read_text_file(file, jinja::Template::kMaxBytes, pipes);
  if (text.empty()) throw Error("{}: expected a template, found nothing", file.string());
  if (nlohmann::json::accept(text)) {  // tokenizer_config.json contains a template, but is none
    throw Error("{}: expected a template, found JSON", file.string());
  }
  return text;
}

ChatTemplateSource read_chat_template(const ModelSource& model, const Tokenizer& tokenizer) {
  ChatTemplateSource source = read_chat_template(model);
  if (const ModelFile* file = model.file()) add_special_tokens(*file, tokenizer, source);
  return source;
}

ChatTemplateSource read_chat_template(const ModelSource& model) {
  const ModelFile* file = model.file();
  return checked(file != nullptr ? of_file(*file) : of_folder(model.path()));
}

}  // namespace stagecraft
