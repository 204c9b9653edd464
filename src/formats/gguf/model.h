#pragma once

#include "checkpoint/model_file.h"
#include "formats/gguf/file.h"

namespace stagecraft {

// A GGUF file as a model: weights.h, config.h and tokenizer.h convert its parts.
class GgufModel : public ModelFile {
 public:
  explicit GgufModel(const std::filesystem::path& path);

  const GgufMetadata& metadata() const { return file_->metadata(); }

  std::shared_ptr<const WeightFile> weights() const override;
  NamedText config() const override;
  bool has_tokenizer() const override;
  Json tokenizer() const override;
  std::filesystem::path vocabulary_path() const override;
  NamedText chat_template() const override;
  NamedText tools_template() const override;
  std::vector<std::pair<std::string, std::size_t>> special_token_ids() const override;
  std::string with_own_names(std::string_view message) const override;

 private:
  NamedText text_of(const std::string& key) const;
  std::string config_where() const;

  std::shared_ptr<const GgufFile> file_;
};

}  // namespace stagecraft
