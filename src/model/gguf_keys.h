#pragma once

#include <string>
#include <vector>

#include "checkpoint/gguf_writer.h"
#include "model/config.h"

namespace stagecraft {

// GGUF's name for the architecture of a model: "llama", "qwen2" or "qwen3". A Mistral without a
// sliding window is a Llama there. Throws Error naming what GGUF, or llama.cpp, cannot express: a
// window. `where` names the model.
std::string gguf_architecture(const Config& config, const std::string& where);

// Adds "general.architecture" and the keys below it: the way back from gguf_config.h.
void add_gguf_config(GgufWriter& writer, const Config& config, const std::string& where);

// What "rope_freqs.weight" must hold: by how much each pair's frequency is divided. Empty if by
// nothing. [head_dim / 2]
std::vector<float> gguf_rope_factors(const Config& config);

}  // namespace stagecraft
