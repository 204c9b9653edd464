#pragma once

#include <string>
#include <string_view>

#include "formats/gguf/file.h"

namespace stagecraft {

// The metadata of a GGUF file, converted back to the config.json of the original model. Throws
// Error, naming the key, for an architecture that architectures.cpp does not list, and for an
// unknown key of the architecture that may change the result.
std::string gguf_config_json(const GgufFile& file);

// Rewrites an error message about the text of gguf_config_json(), which the message calls `where`:
// fields of config.json become the keys of the file, for example "model.gguf:
// 'llama.rope.freq_base': expected ...".
std::string with_gguf_keys(const GgufFile& file, const std::string& where,
                           std::string_view message);

}  // namespace stagecraft
