#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/gguf_weights.h"
#include "checkpoint/safetensors.h"

namespace stagecraft {

// The named tensors of a model, wherever they lie: in model.safetensors of its folder, in the
// shards that model.safetensors.index.json lists, or in a GGUF file. Names, shapes and the order of
// rows are those of Hugging Face in all three. Owns the mapped files; the tensors point into them.
class Checkpoint {
 public:
  // Throws Error naming the file and what is wrong with it.
  static Checkpoint open(const std::filesystem::path& model);

  const StoredTensor* find(std::string_view name) const;  // nullptr if absent
  std::vector<const StoredTensor*> tensors() const;       // all, in order of names
  // Lets go of the memory of the files' pages, once tensors were widened: see MappedFile.
  void release_pages() const;
  // What errors about a tensor are to be called: "models/story/model.safetensors".
  const std::string& name() const { return name_; }

 private:
  explicit Checkpoint(std::string name) : name_(std::move(name)) {}
  const SafetensorsFile& add_file(const std::filesystem::path& path);
  void add_tensors(const std::vector<StoredTensor>& tensors, const std::filesystem::path& path);

  std::string name_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::unique_ptr<GgufWeights> gguf_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

}  // namespace stagecraft
