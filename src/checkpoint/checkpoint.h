#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/weight_file.h"

namespace stagecraft {

class ModelSource;

// The named tensors of a model, wherever they lie: in model.safetensors of its folder, in the
// shards that model.safetensors.index.json lists, or in one file of another format. Names, shapes
// and the order of rows are those of Hugging Face everywhere. Owns the mapped files; the tensors
// point into them.
class Checkpoint {
 public:
  // Throws Error naming the file and what is wrong with it.
  static Checkpoint open(const ModelSource& model);

  const StoredTensor* find(std::string_view name) const;  // nullptr if absent
  std::vector<const StoredTensor*> tensors() const;       // all, in order of names
  // Releases the memory of the files' pages, once tensors were converted to f32: see MappedFile.
  void release_pages() const;
  // See WeightFile; here for all files together.
  std::size_t copied_bytes() const;
  bool is_copy(const StoredTensor& tensor) const;
  void drop_copy(const StoredTensor& tensor) const;
  // If the files store matrices in parts: the stored format, and the type that a matrix is read
  // into (see ComposedWeights::text). Otherwise empty.
  const std::string& composed_text() const { return composed_text_; }
  // The name that the file itself uses for a tensor, for errors: see WeightFile.
  std::string stored_name(const std::string& name) const;
  // "config.json" or "its metadata": what determines the tensors that the model needs. For errors.
  std::string_view described_by() const { return described_by_; }
  // The file, for errors: "models/story/model.safetensors".
  const std::string& name() const { return name_; }

 private:
  explicit Checkpoint(std::string name) : name_(std::move(name)) {}
  void add(std::shared_ptr<const WeightFile> file, const std::filesystem::path& path);
  // Adds all shards that an index names.
  void add_shards(const std::filesystem::path& index);
  // If the folder's config.json describes matrices in parts: replaces the parts by one tensor per
  // matrix.
  void compose(const ModelSource& model);

  std::string name_;
  std::string_view described_by_ = "config.json";
  std::vector<std::shared_ptr<const WeightFile>> files_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
  std::string composed_text_;
};

}  // namespace stagecraft
