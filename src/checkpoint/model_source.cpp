#include "checkpoint/model_source.h"

#include "base/mapped_file.h"
#include "checkpoint/flm.h"
#include "checkpoint/gguf.h"
#include "checkpoint/llama2c.h"

namespace stagecraft {

ModelSource::Format ModelSource::format_of(const std::filesystem::path& path) {
  if (is_flm(path)) return Format::Flm;
  // If the name does not tell the format, each of these two opens the file.
  const bool is_bin = path.extension() == ".bin";
  if (!is_bin && is_gguf(path)) return Format::Gguf;
  if (is_llama2c(path)) return Format::Llama2c;
  return Format::None;
}

std::shared_ptr<const GgufFile> ModelSource::gguf() const {
  if (format_ == Format::Gguf && parsed_->gguf == nullptr) {
    parsed_->gguf = std::make_shared<const GgufFile>(path_);
  }
  return parsed_->gguf;
}

std::shared_ptr<const FlmFile> ModelSource::flm() const {
  if (format_ == Format::Flm && parsed_->flm == nullptr) {
    parsed_->flm = std::make_shared<const FlmFile>(path_);
  }
  return parsed_->flm;
}

std::shared_ptr<const Llama2cFile> ModelSource::llama2c() const {
  if (format_ == Format::Llama2c && parsed_->llama2c == nullptr) {
    parsed_->llama2c = std::make_shared<const Llama2cFile>(path_);
  }
  return parsed_->llama2c;
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
