#include "formats/gguf/layer_kinds.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "formats/gguf/rope.h"

namespace stagecraft {
namespace {

// Which layers have a window: the file lists them, or gives the period (llama.cpp's
// set_swa_pattern), or gives neither.
std::vector<bool> sliding_layers(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                                 std::size_t n_layers) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  if (keys.is_array(kPattern)) {
    std::vector<bool> slides = keys.flags(kPattern);
    if (slides.size() != n_layers) {
      keys.refuse(kPattern, fmt::format("one flag for each of {} layers", n_layers));
    }
    return slides;
  }
  const std::size_t period = keys.size_or(kPattern, architecture.period);
  std::vector<bool> slides(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) slides[i] = i % period < period - 1;
  return slides;
}

// One number per layer. If the file has only one number, all layers have it.
std::vector<std::size_t> sizes_of_layers(ArchitectureKeys& keys, std::string_view name,
                                         std::size_t n_layers) {
  if (!keys.is_array(name)) return std::vector<std::size_t>(n_layers, keys.size(name));
  std::vector<std::size_t> sizes;
  for (const std::int64_t n : keys.integers(name)) {
    if (n < 1 || n > static_cast<std::int64_t>(kMaxDimension)) {
      keys.refuse(name, fmt::format("numbers from 1 to {}", kMaxDimension));
    }
    sizes.push_back(static_cast<std::size_t>(n));
  }
  if (sizes.size() != n_layers) {
    keys.refuse(name, fmt::format("a number for each of {} layers", n_layers));
  }
  return sizes;
}

// Layers that share keys and values may have a feed-forward block of twice the width.
void add_widths(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kWidth = "feed_forward_length";
  constexpr std::string_view kShared = "attention.shared_kv_layers";
  const std::size_t n_layers = config["num_hidden_layers"];
  const std::vector<std::size_t> widths = sizes_of_layers(keys, kWidth, n_layers);
  const std::size_t n_shared = keys.has(kShared) ? keys.count(kShared) : 0;
  const std::size_t n_own = n_layers - std::min(n_layers, n_shared);
  const bool wide = widths.back() != widths.front();
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (widths[i] == (wide && i >= n_own ? 2 : 1) * widths.front()) continue;
    keys.refuse(kWidth, fmt::format("{} in the first {} layers, and the same or twice as many in "
                                    "the others",
                                    widths.front(), n_own));
  }
  config["intermediate_size"] = widths.front();
  config["use_double_wide_mlp"] = wide;
}

// The sizes of heads. Keys that end with "_swa" are for layers with a window.
void add_two_sizes(ArchitectureKeys& keys, nlohmann::json& config) {
  constexpr std::string_view kKeyHeads = "attention.head_count_kv";
  const std::size_t n_layers = config["num_hidden_layers"];
  const std::vector<std::size_t> n_kv_heads = sizes_of_layers(keys, kKeyHeads, n_layers);
  const std::size_t global = keys.size("attention.key_length");
  const std::size_t local = keys.size_or("attention.key_length_swa", global);
  keys.expect("attention.value_length", global);
  keys.expect("rope.dimension_count", global);
  keys.expect("attention.value_length_swa", local);
  keys.expect("rope.dimension_count_swa", local);
  config["num_attention_heads"] = keys.size("attention.head_count");
  config["head_dim"] = local;
  config["num_key_value_heads"] = n_kv_heads.front();  // if no layer has a window
  const nlohmann::json& kinds = config["layer_types"];
  for (std::size_t i = 0; i < n_layers; ++i) {
    const auto first = static_cast<std::size_t>(std::ranges::find(kinds, kinds[i]) - kinds.begin());
    if (n_kv_heads[i] != n_kv_heads[first]) {
      keys.refuse(kKeyHeads,
                  "one number for all layers with a window, and one for all global layers");
    }
    if (kinds[i] == "sliding_attention") {
      config["num_key_value_heads"] = n_kv_heads[i];
    } else {
      config["per_layer_config"][std::to_string(i)] = {{"head_dim", global},
                                                       {"num_key_value_heads", n_kv_heads[i]}};
    }
  }
}

// Whether global layers use their keys as values: then the file has no tensor for values.
bool values_are_keys(const GgufFile& file, const nlohmann::json& config) {
  const auto& kinds = config["layer_types"];
  const auto first = std::ranges::find(kinds, "full_attention") - kinds.begin();
  return file.find(fmt::format("blk.{}.attn_v.weight", first)) == nullptr;
}

}  // namespace

void add_windows(ArchitectureKeys& keys, const GgufArchitecture& architecture,
                 nlohmann::json& config) {
  constexpr std::string_view kWindow = "attention.sliding_window";
  const std::size_t n_layers = config["num_hidden_layers"];
  std::vector<bool> slides = sliding_layers(keys, architecture, n_layers);
  std::size_t window = architecture.window;
  if (keys.has(kWindow)) window = keys.is_set(kWindow) ? keys.size(kWindow) : 0;
  if (window == 0) slides.assign(n_layers, false);
  if (window != 0) config["sliding_window"] = window;
  for (const bool slide : slides) {
    config["layer_types"].push_back(slide ? "sliding_attention" : "full_attention");
  }
}

void add_two_kinds(ArchitectureKeys& keys, const GgufFile& file,
                   const GgufArchitecture& architecture, nlohmann::json& config) {
  add_windows(keys, architecture, config);
  add_widths(keys, config);
  add_two_sizes(keys, config);
  add_two_ropes(keys, file, config);
  config["attention_k_eq_v"] = values_are_keys(file, config);
}

}  // namespace stagecraft
