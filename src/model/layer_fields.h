#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "model/config_fields.h"

namespace stagecraft {

// Fields that say which layers attend, and which have a sliding window.

// Reads "layer_types" of an architecture whose layers are either "full_attention" or `other`.
// Returns a value per layer: true for "full_attention". Throws Error if the field is missing, or
// for a third type, or another number of layers.
std::vector<bool> parse_attention_layers(const ConfigFields& fields, std::size_t n_layers,
                                         std::string_view other);
// Reads an array of layer numbers. Returns a value per layer: true for the layers in it; nullopt if
// the field is missing.
std::optional<std::vector<bool>> parse_listed_layers(const ConfigFields& fields,
                                                     std::string_view key, std::size_t n_layers);
// A value per layer: true for each nth layer, that is the last of n layers, of the next n layers
// ...
std::vector<bool> every_nth_layer(std::size_t n_layers, std::size_t n);

// "sliding_window" in positions; `default_value` is that of transformers. Throws Error for null,
// which means no window: architectures that allow it ask before.
std::size_t parse_window(const ConfigFields& fields, std::size_t default_value = 4096);
// "max_window_layers", by which older files of Qwen say which layers have a window. Not read if the
// file has "layer_types", which takes precedence.
std::size_t parse_max_window_layers(const ConfigFields& fields);
// Returns the window of each layer; 0: no window. The layers that "layer_types" calls
// "sliding_attention" have `window`; without "layer_types", the layers i for which slides(i) is
// true. Throws Error as parse_attention_layers, or if `window` is 0 and "layer_types" has such a
// layer.
std::vector<std::size_t> parse_sliding_layers(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t window,
                                              const std::function<bool(std::size_t)>& slides);
// The same with "sliding_window" in all layers but each `pattern`th.
std::vector<std::size_t> parse_window_pattern(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t pattern,
                                              std::size_t default_value = 4096);

}  // namespace stagecraft
