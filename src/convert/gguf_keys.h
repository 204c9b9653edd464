#pragma once

#include <string>
#include <vector>

#include "formats/gguf/writer.h"
#include "model/config.h"

namespace stagecraft {

// GGUF's name for the architecture of a model: "llama", "qwen2" or "qwen3". A Mistral without a
// sliding window is a Llama in GGUF. Throws Error if the model has a sliding window, which GGUF or
// llama.cpp cannot express here. `where` names the model.
std::string gguf_architecture(const Config& config, const std::string& where);

// Adds "general.architecture" and the keys of the architecture: the reverse of gguf_config_json.
void add_gguf_config(GgufWriter& writer, const Config& config, const std::string& where);

// The values of the tensor "rope_freqs.weight": the frequency of each pair is divided by its value.
// [head_dim / 2], or empty if no frequency changes.
std::vector<float> gguf_rope_factors(const Config& config);

}  // namespace stagecraft
