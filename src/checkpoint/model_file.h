#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// A text that describes a part of a model, and the words that name it in errors:
// "models/story/config.json", "model.gguf: metadata".
struct NamedText {
  std::string text;
  std::string where;
};

// One file that holds a whole model. Its parts are returned in the forms that they have in a folder
// of Hugging Face, so the rest of the engine does not depend on the format of the file. All
// functions throw Error naming the file, what was expected and what was found.
class ModelFile {
 public:
  virtual ~ModelFile() = default;

  // May be used after this object is gone.
  virtual std::shared_ptr<const WeightFile> weights() const = 0;

  // A config.json.
  virtual NamedText config() const = 0;

  virtual bool has_tokenizer() const = 0;
  // The content of a tokenizer.json.
  virtual Json tokenizer() const = 0;
  // The file that holds the vocabulary, for errors.
  virtual std::filesystem::path vocabulary_path() const = 0;

  // Jinja templates, as ChatTemplateSource explains them; empty texts if the file has none.
  virtual NamedText chat_template() const { return {}; }
  virtual NamedText tools_template() const { return {}; }
  // What a tokenizer_config.json says of "bos_token" and others, as ids, which may be too large.
  virtual std::vector<std::pair<std::string, std::size_t>> special_token_ids() const { return {}; }

  // A message about the texts of config() or tokenizer(), with the names that the file itself has
  // for their fields.
  virtual std::string with_own_names(std::string_view message) const {
    return std::string(message);
  }
};

struct ModelFormat {
  std::string_view extension;  // ".gguf"
  // Whether the file's name or its first bytes show this format. False for a folder.
  bool (*is_format_of)(const std::filesystem::path& path);
  std::shared_ptr<const ModelFile> (*open)(const std::filesystem::path& path);
};

// All formats of such files. They are listed above the folders that they need:
// formats/model_formats.cpp.
std::span<const ModelFormat> model_formats();

// The content of a tokenizer.json for a file that holds only the vocabulary of such a format;
// nullopt for any other file.
std::optional<Json> describe_vocabulary_file(const std::filesystem::path& path);

}  // namespace stagecraft
