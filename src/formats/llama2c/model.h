#pragma once

#include "checkpoint/model_file.h"
#include "formats/llama2c/file.h"

namespace stagecraft {

// A llama2.c file as a model, and the vocabulary beside it: config.h and tokenizer.h convert them.
class Llama2cModel : public ModelFile {
 public:
  explicit Llama2cModel(const std::filesystem::path& path);

  std::shared_ptr<const WeightFile> weights() const override;
  NamedText config() const override;
  bool has_tokenizer() const override;
  Json tokenizer() const override;
  std::filesystem::path vocabulary_path() const override;

 private:
  std::filesystem::path path_;
  std::shared_ptr<const Llama2cFile> file_;
};

}  // namespace stagecraft
