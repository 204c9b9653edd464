#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "backends/engine.h"
#include "base/token.h"
#include "checkpoint/stored_tensor.h"
#include "tensor/matrix.h"

namespace stagecraft {

// One intermediate result for a whole text.
struct Activation {
  std::string name;                // "embedding", "layers.1.q_rope", "logits"
  std::vector<std::size_t> shape;  // [seq_len, width]; attn_probs: [n_heads, seq_len, seq_len]
  Matrix<float> values;            // the same numbers, the leading sizes multiplied into rows

  StoredTensor stored() const;  // a view of the values
};

// Runs `ids` through the model and keeps every activation that the backend shows, and the logits,
// in the order of computation. Position i looks at positions 0 to i, so the result is the same
// however the text is cut into passes; what a pass did not compute before, it finds in the KV
// cache.
//
//   ids     [seq_len]  at least one
//   passes  the number of tokens in each pass, adding up to seq_len: {3, 1} computes three
//           positions at once and then one
//
// Throws Error if the engine's backend is not the textbook, if the passes do not add up or an id is
// out of range.
std::vector<Activation> trace(Engine& engine, std::span<const TokenId> ids,
                              std::span<const std::size_t> passes);

// Writes a safetensors file of F32 tensors; __metadata__.order lists their names. Throws Error.
void write_trace(const std::filesystem::path& path, std::span<const Activation> activations);

}  // namespace stagecraft
