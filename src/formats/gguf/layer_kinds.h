#pragma once

#include <nlohmann/json_fwd.hpp>

#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/file.h"

namespace stagecraft {

// Parts of gguf_config_json() for models in which some layers attend only to a window of the last
// tokens. `config` must have "num_hidden_layers". Both throw Error, naming the key.

// Adds "sliding_window" and "layer_types": which layers have the window.
void add_windows(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                 nlohmann::json& config);

// The same for a model (Gemma 4) whose global layers also have heads of another size and another
// RoPE. Adds the sizes of both kinds of layers, too.
void add_two_kinds(ArchitectureKeys& keys, const GgufFile& file,
                   const GgufArchitecture& architecture, nlohmann::json& config);

}  // namespace stagecraft
