#pragma once

#include <optional>

#include "model/config.h"

namespace stagecraft {

// The RoPE of type llama3 (rope_frequencies.h) that has, up to rounding, the frequencies of `rope`,
// which has a factor for each pair of a head of head_dim columns. nullopt if there is none with the
// blend of all released models: low_freq_factor 1, high_freq_factor 4. So the GGUF file of a Llama
// 3.1 gets back the fields of config.json from which its factors were computed.
std::optional<RopeConfig> llama3_rope(const RopeConfig& rope, std::size_t head_dim);

}  // namespace stagecraft
