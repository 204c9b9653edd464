#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backends/engine.h"
#include "base/token.h"
#include "tensor/matrix.h"
#include "tensor/stored_tensor.h"

namespace stagecraft {

// One intermediate result for a whole text.
struct Activation {
  std::string name;                // "embedding", "layers.1.q_rope", "logits"
  std::vector<std::size_t> shape;  // [seq_len, width]; attn_probs: [n_heads, seq_len, seq_len]
  Matrix<float> values;            // the numbers as a matrix: the leading dimensions are multiplied

  StoredTensor stored() const;  // a view of the values
};

// Runs `ids` through the model and keeps every activation that the backend shows, and the logits,
// in the order of computation. The result does not depend on how the text is cut into passes:
// earlier keys and values are read from the KV cache. (Under a PromptRule, the whole prompt must be
// in the first pass.)
//
//   ids     [seq_len]  at least one
//   passes  the number of tokens in each pass, with the sum seq_len: {3, 1} computes three
//           positions at once and then one
//
// Throws Error if the engine's backend is not the textbook, if the sum of the passes is not
// seq_len, if an id is out of range, or if the result needs more memory than this process may use.
std::vector<Activation> trace(Engine& engine, std::span<const TokenId> ids,
                              std::span<const std::size_t> passes);

// Writes a safetensors file of F32 tensors; __metadata__.order lists their names. Throws Error if
// that fails. check: called again and again; it may throw to stop.
void write_trace(
    const std::filesystem::path& path, std::span<const Activation> activations,
    const std::function<void()>& check = [] {});

}  // namespace stagecraft
