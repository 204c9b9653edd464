#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"

namespace stagecraft {

// The named tensors of a model folder, wherever they lie: in model.safetensors, or in the shards
// that model.safetensors.index.json lists. Owns the mapped files; the tensors point into them.
class Checkpoint {
 public:
  // Throws Error naming the file and what is wrong with it.
  static Checkpoint open(const std::filesystem::path& folder);

  const StoredTensor* find(std::string_view name) const;  // nullptr if absent
  std::vector<const StoredTensor*> tensors() const;       // all, in order of names
  // What errors about a tensor are to be called: "models/story/model.safetensors".
  const std::string& name() const { return name_; }

 private:
  explicit Checkpoint(std::string name) : name_(std::move(name)) {}
  const SafetensorsFile& add_file(const std::filesystem::path& path);

  std::string name_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const StoredTensor*, std::less<>> tensors_;
};

}  // namespace stagecraft
