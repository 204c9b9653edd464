#pragma once

#include <cstddef>

#include <nlohmann/json_fwd.hpp>

#include "formats/gguf/architecture_keys.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/file.h"

namespace stagecraft {

// What a GGUF file says about RoPE, as fields of config.json. All functions throw Error, naming the
// key or the tensor.

// "partial_rotary_factor" if RoPE rotates the first `columns` of the `head_dim` columns of a head.
double rotary_factor(std::size_t columns, std::size_t head_dim);

// Adds "rope_theta", and "rope_scaling" if the file scales positions.
void add_rope(ArchitectureKeys& keys, const GgufArchitecture& architecture, nlohmann::json& config);

// Adds "rope_parameters" for layers of two kinds: with a window, and global. In a global layer only
// the first pairs of a head rotate; the tensor "rope_freqs.weight" shows how many.
void add_two_ropes(ArchitectureKeys& keys, const GgufFile& file, nlohmann::json& config);

// Adds kRopeFactors (config_file.h) if the file stores factors of RoPE as a tensor. Throws Error if
// the tensor has another shape or type, or if a factor is not positive.
void add_rope_factors(const GgufFile& file, std::size_t head_dim, nlohmann::json& config);

}  // namespace stagecraft
