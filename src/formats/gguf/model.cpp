#include "formats/gguf/model.h"

#include <cstdint>
#include <utility>

#include "base/error.h"
#include "formats/gguf/config.h"
#include "formats/gguf/tokenizer.h"
#include "formats/gguf/weights.h"
#include "text/chat_template_source.h"

namespace stagecraft {

GgufModel::GgufModel(const std::filesystem::path& path)
    : file_(std::make_shared<const GgufFile>(path)) {}

std::shared_ptr<const WeightFile> GgufModel::weights() const {
  return std::make_shared<const GgufWeights>(file_);
}

std::string GgufModel::config_where() const { return metadata().file() + ": metadata"; }

NamedText GgufModel::config() const { return {gguf_config_json(*file_), config_where()}; }

bool GgufModel::has_tokenizer() const { return metadata().has("tokenizer.ggml.tokens"); }

Json GgufModel::tokenizer() const { return describe_gguf_tokenizer(metadata()); }

std::filesystem::path GgufModel::vocabulary_path() const { return metadata().file(); }

NamedText GgufModel::text_of(const std::string& key) const {
  return {std::string(metadata().text_or(key, "")), fmt::format("{}: {}", metadata().file(), key)};
}

NamedText GgufModel::chat_template() const { return text_of("tokenizer.chat_template"); }

NamedText GgufModel::tools_template() const {
  return text_of(fmt::format("tokenizer.chat_template.{}", kToolUse));
}

std::vector<std::pair<std::string, std::size_t>> GgufModel::special_token_ids() const {
  std::vector<std::pair<std::string, std::size_t>> ids;
  for (const auto& [name, key] : {std::pair{"bos_token", "tokenizer.ggml.bos_token_id"},
                                  {"eos_token", "tokenizer.ggml.eos_token_id"},
                                  {"unk_token", "tokenizer.ggml.unknown_token_id"},
                                  {"pad_token", "tokenizer.ggml.padding_token_id"}}) {
    if (const auto id = metadata().find_token_id(key, SIZE_MAX)) ids.emplace_back(name, *id);
  }
  return ids;
}

std::string GgufModel::with_own_names(std::string_view message) const {
  return message.starts_with(config_where()) ? with_gguf_keys(*file_, config_where(), message)
                                             : with_gguf_token_keys(message, metadata().file());
}

}  // namespace stagecraft
