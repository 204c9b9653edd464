#pragma once

#include <string>

#include "checkpoint/gguf.h"
#include "model/config.h"

namespace stagecraft {

// The Config that the metadata of a GGUF file describes: written as the config.json that the model
// had before (gguf_config_json), and then read as any other. What config.json cannot say is added:
// RoPE factors. Throws Error, naming the key, for an architecture that gguf_architectures.cpp does
// not list and for any key of the architecture that may change the result and is not understood.
Config gguf_config(const GgufFile& file);

std::string gguf_config_json(const GgufFile& file);

}  // namespace stagecraft
