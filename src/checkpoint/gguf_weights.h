#pragma once

#include <memory>
#include <vector>

#include "checkpoint/gguf.h"
#include "checkpoint/rope_pairs.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

// The weights of a GGUF model as a Hugging Face checkpoint would hold them, so that the loader
// knows one naming only:
//   names      blk.3.attn_q.weight -> model.layers.3.self_attn.q_proj.weight; unknown names stay as
//              they are
//   row order  architecture "llama" stores each head of q and k with the two rows of a RoPE pair
//              side by side; here the first halves come first (rope_pairs.h)
//   the rest   bytes as they lie in the file; "rope_freqs.weight" is no weight (gguf_config.h)
class GgufWeights : public WeightFile {
 public:
  // Throws Error, also where the file is only one part of a model.
  explicit GgufWeights(std::shared_ptr<const GgufFile> file);

  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override { file_->release_pages(); }
  std::size_t copied_bytes() const override { return total_size(reordered_); }

 private:
  void reorder_pairs(StoredTensor& tensor, std::size_t n_heads);

  std::shared_ptr<const GgufFile> file_;
  std::vector<StoredTensor> tensors_;
  std::vector<std::vector<std::byte>> reordered_;  // bytes of tensors that do not lie in the file
};

// The name that GGUF has for a tensor of a Hugging Face checkpoint, "" if it has none.
std::string gguf_name(const std::string& hugging_face_name);

// Frequency factors of RoPE, which GGUF keeps among the tensors.
inline constexpr std::string_view kGgufRopeFactors = "rope_freqs.weight";

}  // namespace stagecraft
