#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// The header of a llama2.c file (github.com/karpathy/llama2.c, export.py).
struct Llama2cHeader {
  int version = 0;  // 0, 1 or 2
  std::size_t dim = 0, ffn_dim = 0, n_layers = 0, n_heads = 0, n_kv_heads = 0;
  std::size_t vocab_size = 0, max_seq_len = 0;
  bool tied = false;           // the embedding table is also the output head
  std::size_t group_size = 0;  // version 2: the number of int8 that share a scale
  std::size_t size = 0;        // of this header, in bytes
};

// One llama2.c file ("stories15M.bin"), mapped; little-endian:
//   version 0   7 int32 (a negative vocab_size: not tied), then f32
//   version 1   "ak42" as a number, version, 7 int32, a byte "tied", zeros up to byte 256; then f32
//   version 2   as version 1, with the group size after the byte "tied"; norms are f32, a matrix is
//               all its int8, then one f32 scale per group
// The order of the tensors is fixed.
class Llama2cFile {
 public:
  // Throws Error naming the file and the field; also if the file is not exactly as large as the
  // sizes in its header require.
  explicit Llama2cFile(const std::filesystem::path& path);

  const Llama2cHeader& header() const { return header_; }
  std::span<const std::byte> bytes() const { return file_.bytes(); }
  void release_pages() const { file_.release_pages(); }

 private:
  MappedFile file_;
  Llama2cHeader header_;
};

// The weights of such a file. The file stores the rows of q and k as RoPE pairs; they are copied
// into the order of Hugging Face (rope_pairs.h). Matrices of version 2 become f32: int8 * scale.
class Llama2cWeights : public WeightFile {
 public:
  explicit Llama2cWeights(std::shared_ptr<const Llama2cFile> file);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override { file_->release_pages(); }

 private:
  std::shared_ptr<const Llama2cFile> file_;
  std::vector<StoredTensor> tensors_;
};

// Whether `path` is a llama2.c file. A file named .bin is one, except tok*.bin, which is a
// vocabulary. A file with another name is one if it begins with "ak42", or if a header of version 0
// at its start gives exactly the size of the file. False for a folder.
bool is_llama2c(const std::filesystem::path& path);

}  // namespace stagecraft
