#pragma once

#include <string>
#include <string_view>

#include "checkpoint/gguf.h"
#include "model/config.h"

namespace stagecraft {

// What the metadata of a GGUF file says, as the config.json that the model had before. Throws
// Error, naming the key, for an architecture that gguf_architectures.cpp does not list and for any
// key of the architecture that may change the result and is not understood.
std::string gguf_config_json(const GgufFile& file);

// An error about the text of gguf_config_json(), which calls it `where`, with the file's own keys
// in the place of the fields of config.json: "model.gguf: 'llama.rope.freq_base': expected ...".
std::string with_gguf_keys(const GgufFile& file, const std::string& where,
                           std::string_view message);

// Adds what config.json cannot say: the factors of RoPE, which a file may have as a tensor. Throws
// Error for one of another shape or type, and for a factor that is not positive.
void take_rope_factors(const GgufFile& file, Config& config);

}  // namespace stagecraft
