#include "formats/llama2c/model.h"

#include "formats/llama2c/config.h"
#include "formats/llama2c/tokenizer.h"

namespace stagecraft {

Llama2cModel::Llama2cModel(const std::filesystem::path& path)
    : path_(path), file_(std::make_shared<const Llama2cFile>(path)) {}

std::shared_ptr<const WeightFile> Llama2cModel::weights() const {
  return std::make_shared<const Llama2cWeights>(file_);
}

NamedText Llama2cModel::config() const {
  return {llama2c_config_json(file_->header()), path_.string() + ": header"};
}

bool Llama2cModel::has_tokenizer() const {
  return find_llama2c_tokenizer(path_, file_->header().vocab_size).has_value();
}

Json Llama2cModel::tokenizer() const {
  return describe_llama2c_tokenizer_beside(path_, file_->header().vocab_size);
}

std::filesystem::path Llama2cModel::vocabulary_path() const {
  return find_llama2c_tokenizer(path_, file_->header().vocab_size).value_or(path_);
}

}  // namespace stagecraft
