#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_architectures.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// The weights of a GGUF model as a Hugging Face checkpoint would hold them, so that the loader
// knows one naming only:
//   names      blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; unknown names stay as
//              they are
//   experts    one tensor with a matrix per expert, or per head, becomes one tensor each
//   q, k, v    in one tensor become three
//   row order  some architectures store each head of q and k with the two rows of a RoPE pair side
//              by side; here the first halves come first (rope_pairs.h)
//   norms      some store 1 + weight; here it is the weight, as f32
//   decay      of Qwen3.5 is stored as -exp(x); here it is x, as f32
//   layers     that predict further tokens: here "mtp." stands before the file's names
//   the rest   bytes as they lie in the file; "rope_freqs.weight" is no weight (gguf_config.h)
// gguf_architectures.h says which do.
class GgufWeights : public WeightFile {
 public:
  // Throws Error, also where the file is only one part of a model.
  explicit GgufWeights(std::shared_ptr<const GgufFile> file);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override { file_->release_pages(); }
  // Of one of several that the file has in one tensor: "blk.3.ffn_up_exps.weight[7]",
  // "blk.3.attn_qkv.weight[q]".
  std::string stored_name(const std::string& name) const override;

 private:
  void add(const StoredTensor& stored, const GgufArchitecture& architecture);
  // A tensor per expert or head; `key`: how many of these `parts` there are.
  void add_each(const StoredTensor& stored, const std::string& key, std::string_view parts,
                const std::function<std::string(std::size_t)>& name);
  void add_thirds(const StoredTensor& stored, const GgufArchitecture& architecture,
                  const std::function<std::string(std::string_view)>& name);
  void reorder_pairs(StoredTensor& tensor, std::size_t n_heads);
  [[noreturn]] void refuse_type(const StoredTensor& tensor) const;
  // Replaces each number of a tensor of floats, as f32. Throws Error for one of another type.
  void replace(StoredTensor& tensor, const std::function<float(float)>& change);

  std::shared_ptr<const GgufFile> file_;
  const GgufArchitecture* architecture_ = nullptr;
  std::size_t n_layers_ = SIZE_MAX;  // that compute
  std::vector<StoredTensor> tensors_;
};

// The name that GGUF has for a tensor of a Hugging Face checkpoint, "" if it has none.
std::string gguf_name(const std::string& hugging_face_name);

// Frequency factors of RoPE, which GGUF keeps among the tensors.
inline constexpr std::string_view kGgufRopeFactors = "rope_freqs.weight";

}  // namespace stagecraft
