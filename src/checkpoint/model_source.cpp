#include "checkpoint/model_source.h"

#include "base/mapped_file.h"
#include "checkpoint/model_file.h"

namespace stagecraft {

const ModelFormat* ModelSource::format_of(const std::filesystem::path& path) {
  for (const ModelFormat& format : model_formats()) {
    if (format.is_format_of(path)) return &format;
  }
  return nullptr;
}

const ModelFile* ModelSource::file() const {
  if (is_file() && parsed_->file == nullptr) parsed_->file = format_->open(path_);
  return parsed_->file.get();
}

const std::string& ModelSource::config_json() const {
  if (!parsed_->config_json) {
    parsed_->config_json = read_text_file(path_ / "config.json", kMaxConfigBytes);
  }
  return *parsed_->config_json;
}

std::string model_name(const ModelSource& model) {
  std::error_code ignored;
  const auto whole = std::filesystem::absolute(model.path(), ignored).lexically_normal();
  const auto last = whole.has_filename() ? whole : whole.parent_path();
  return model.is_file() ? last.stem().string() : last.filename().string();
}

}  // namespace stagecraft
