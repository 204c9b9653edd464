#pragma once

#include "checkpoint/model_file.h"
#include "formats/flm/file.h"

namespace stagecraft {

// A .flm file as a model: config.h and tokenizer.h convert its parts.
class FlmModel : public ModelFile {
 public:
  explicit FlmModel(const std::filesystem::path& path);

  const FlmFile& contents() const { return *file_; }

  std::shared_ptr<const WeightFile> weights() const override { return file_; }
  NamedText config() const override;
  bool has_tokenizer() const override;
  Json tokenizer() const override;
  std::filesystem::path vocabulary_path() const override;
  NamedText chat_template() const override;

 private:
  std::shared_ptr<const FlmFile> file_;
};

}  // namespace stagecraft
