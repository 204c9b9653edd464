#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// One safetensors file (github.com/huggingface/safetensors), mapped:
//   8 bytes     little-endian length N of the header
//   N bytes     JSON: name -> {"dtype", "shape", "data_offsets": [begin, end]}, "__metadata__"
//   the rest    the tensors' bytes, without holes or overlaps, little-endian, row-major
// Every rule of the format is checked before a byte of data is used.
class SafetensorsFile : public WeightFile {
 public:
  // Throws Error naming the file, the tensor, what was expected and what was found.
  explicit SafetensorsFile(const std::filesystem::path& path);

  // In the order of their data in the file.
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr if absent
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  void release_pages() const override { file_.release_pages(); }

 private:
  MappedFile file_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, std::size_t> places_;  // name -> index into tensors_
  std::map<std::string, std::string> metadata_;
};

}  // namespace stagecraft
