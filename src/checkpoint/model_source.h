#pragma once

#include <concepts>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace stagecraft {

class ModelFile;
struct ModelFormat;

// A config.json with more bytes is refused.
inline constexpr std::size_t kMaxConfigBytes = std::size_t{4} << 20;

// A model on the disk: a folder in the layout of Hugging Face, or one file of another format.
// Config, vocabulary, chat template and weights are all read through it. A program that passes the
// same ModelSource to all these readers parses the model's file only once. Copies of a ModelSource
// share the parsed file. Several threads may use them only after the first reader has returned.
class ModelSource {
 public:
  // Opens the file only if its name does not tell the format. Not explicit, so that functions that
  // expect a model also take its path.
  template <std::convertible_to<std::filesystem::path> Path>
  ModelSource(const Path& path) : path_(path), format_(format_of(path_)) {}

  const std::filesystem::path& path() const { return path_; }
  std::string name() const { return path_.string(); }  // for errors
  // Whether it is one file that holds a whole model. The name or the first bytes show the format.
  bool is_file() const { return format_ != nullptr; }

  // The file, parsed by the first call; nullptr if is_file() is false. Lives as long as a copy of
  // this object. Throws Error naming the file, what was expected and what was found.
  const ModelFile* file() const;
  // The text of a folder's config.json, read by the first call.
  const std::string& config_json() const;

 private:
  static const ModelFormat* format_of(const std::filesystem::path& path);
  struct Parsed {
    std::shared_ptr<const ModelFile> file;
    std::optional<std::string> config_json;
  };

  std::filesystem::path path_;
  const ModelFormat* format_;  // nullptr for a folder, or for another file
  std::shared_ptr<Parsed> parsed_ = std::make_shared<Parsed>();
};

// "SmolLM2-135M" for .../SmolLM2-135M.gguf, "story" for models/story/
std::string model_name(const ModelSource& model);

}  // namespace stagecraft
