#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/weight_file.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/file.h"

namespace stagecraft {

// The weights of a GGUF model as a Hugging Face checkpoint would hold them, so that the loader
// needs to know only that layout:
//   names      blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; unknown names are
//              kept
//   experts    a tensor with one matrix per expert, or per head, becomes one tensor per matrix
//   q, k, v    a tensor that holds all three becomes three tensors
//   row order  some architectures store the two rows of a RoPE pair of q and k side by side; they
//              are copied so that the first halves come first (rope_pairs.h)
//   norms      some architectures store 1 + weight; the result is the weight, as f32
//   decay      Qwen3.5 stores -exp(x); the result is x, as f32
//   layers     layers that predict further tokens: the names of the file, after "mtp."
//   the rest   bytes as in the file; "rope_freqs.weight" is not a weight (rope.h)
// architectures.cpp lists which architectures need which of these changes.
class GgufWeights : public WeightFile {
 public:
  // Throws Error if a tensor does not fit the metadata, or if the file is only one part of a model.
  explicit GgufWeights(std::shared_ptr<const GgufFile> file);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override { file_->release_pages(); }
  // For a tensor that was cut out of a larger one: the name of the larger tensor and the index, for
  // example "blk.3.ffn_up_exps.weight[7]" or "blk.3.attn_qkv.weight[q]".
  std::string stored_name(const std::string& name) const override;

 private:
  void add(const StoredTensor& stored, const GgufArchitecture& architecture);
  // Adds one tensor per expert or head. key: the metadata key of their number. parts: "experts" or
  // "heads", for errors.
  void add_each(const StoredTensor& stored, const std::string& key, std::string_view parts,
                const std::function<std::string(std::size_t)>& name);
  void add_thirds(const StoredTensor& stored, const GgufArchitecture& architecture,
                  const std::function<std::string(std::string_view)>& name);
  void reorder_pairs(StoredTensor& tensor, std::size_t n_heads);
  [[noreturn]] void refuse_type(const StoredTensor& tensor) const;
  // Replaces each number x of a tensor by change(x), as f32. Throws Error if the tensor is not F32,
  // F16 or BF16.
  void replace(StoredTensor& tensor, const std::function<float(float)>& change);

  std::shared_ptr<const GgufFile> file_;
  const GgufArchitecture* architecture_ = nullptr;
  std::size_t n_layers_ = SIZE_MAX;  // layers from this number on predict further tokens
  std::vector<StoredTensor> tensors_;
};

// GGUF's name for a tensor of a Hugging Face checkpoint; "" if it has none.
std::string gguf_name(const std::string& hugging_face_name);

}  // namespace stagecraft
