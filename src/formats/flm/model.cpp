#include "formats/flm/model.h"

#include "formats/flm/config.h"
#include "formats/flm/tokenizer.h"

namespace stagecraft {

FlmModel::FlmModel(const std::filesystem::path& path)
    : file_(std::make_shared<const FlmFile>(path)) {}

NamedText FlmModel::config() const { return {flm_config_json(*file_), file_->name() + ": pairs"}; }

bool FlmModel::has_tokenizer() const { return !file_->vocabulary().empty(); }

Json FlmModel::tokenizer() const { return describe_flm_tokenizer(*file_); }

std::filesystem::path FlmModel::vocabulary_path() const { return file_->name(); }

NamedText FlmModel::chat_template() const {
  return {flm_chat_template(*file_), file_->name() + ": user_role and others"};
}

}  // namespace stagecraft
