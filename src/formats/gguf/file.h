#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "formats/gguf/metadata.h"
#include "tensor/stored_tensor.h"

namespace stagecraft {

// One GGUF file (github.com/ggml-org/ggml, docs/gguf.md), version 2 or 3, mapped; little-endian:
//   "GGUF", version, number of tensors, number of metadata pairs
//   the pairs         key, type, value
//   for each tensor   name, dimensions (the innermost first), type, offset into the data
//   the data          begins at the next multiple of "general.alignment", and so does each tensor
// Every rule of the format is checked before a byte of data is used. The file holds what a model
// folder holds: config, tokenizer and weights.
class GgufFile {
 public:
  // Throws Error naming the file, the key or tensor, what was expected and what was found.
  explicit GgufFile(const std::filesystem::path& path);

  const GgufMetadata& metadata() const { return metadata_; }
  // In the order of the file, with its names ("blk.0.attn_q.weight"). Shapes are [rows, columns],
  // as everywhere in the engine; the file stores the dimensions in reverse.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  const StoredTensor* find(std::string_view name) const;  // nullptr if absent
  void release_pages() const { file_.release_pages(); }   // see MappedFile

  static constexpr std::string_view kMagic = "GGUF";

 private:
  MappedFile file_;
  GgufMetadata metadata_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string_view, std::size_t> places_;  // name -> index into tensors_
};

// GGUF's number for a type. Throws Error if it has none.
std::uint32_t gguf_type(DType dtype);

// Whether `path` is a GGUF file by its name or its first bytes (a download cache gives files other
// names). False for a folder, and for a file named .bin, which is one of llama2.c.
bool is_gguf(const std::filesystem::path& path);

}  // namespace stagecraft
