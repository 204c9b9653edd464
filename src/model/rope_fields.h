#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// Fields of RoPE that parse_rope (config_extensions.h) does not read: fields in other places, RoPE
// that rotates a part of each head, and layers of two kinds.

// The object that parse_rope reads: "rope_scaling" if it is there and not empty, else
// "rope_parameters"; nullopt if there is neither.
std::optional<ConfigFields> rope_object(const ConfigFields& fields);

// Whether parse_rope refuses the type of RoPE unless it gets kYarn.
bool needs_yarn(const ConfigFields& fields);

// The number by which transformers multiplies q and k if yarn stretches the context by `factor`:
// 0.1 * weight * ln(factor) + 1, or 1 if factor <= 1 (Peng et al. 2023, section 3.4). `weight` is
// 1, or "mscale" or "mscale_all_dim" of DeepSeek's files.
double yarn_growth(double factor, double weight = 1.0);

// The theta of RoPE; `default_value` if the file does not give it.
double parse_theta(const ConfigFields& fields, std::string_view key, double default_value);
// parse_rope for files that store this object and theta elsewhere.
RopeConfig parse_rope(const ConfigFields& top, const std::optional<ConfigFields>& object,
                      std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured);

// Throws Error if the file asks for RoPE of another type than the default one.
void refuse_stretched_rope(const ConfigFields& fields, const RopeConfig& rope);

// RoPE that rotates only the first columns of each head.
struct PartialRope {
  RopeConfig rope;
  std::size_t columns = 0;  // rotated columns per head, an even number from 2 to head_dim
};
// Names of fields and defaults that differ between architectures.
struct PartialRopeFields {
  std::string_view factor;  // the name of "partial_rotary_factor" at the top
  double default_value;     // transformers' default for it
  std::string_view theta = "rope_theta";
  std::span<const std::string_view> honoured = {};  // as in parse_rope
};
// Reads the factor at the top (names.factor) or "partial_rotary_factor" in the object of RoPE,
// which takes precedence. Throws Error for rope types other than the default one, and for an odd
// number of columns.
PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names);

// RoPE for one kind of layers, for models in which layers with a window and layers without one have
// different RoPE. Newer files hold one object per kind in "rope_parameters". In older files,
// "rope_scaling" is for the layers without a window, and `theta_key` is the name of this kind's
// theta.
struct RopeOfKind {
  bool slides = false;
  std::string_view theta_key = "rope_theta";
  double theta = 10'000.0;                          // the default
  std::span<const std::string_view> honoured = {};  // as in parse_rope
};
RopeConfig parse_rope_of(const ConfigFields& fields, std::size_t max_seq_len,
                         const RopeOfKind& kind);

}  // namespace stagecraft
