#include "model/layer_fields.h"

namespace stagecraft {

std::vector<bool> parse_attention_layers(const ConfigFields& fields, std::size_t n_layers,
                                         std::string_view other) {
  const JsonNode types = *fields.find("layer_types");
  if (!types.is_array() || types.size() != n_layers) {
    throw Error("{}: 'layer_types': expected one type for each of {} layers, found {}",
                fields.where(), n_layers, types.describe());
  }
  std::vector<bool> attends;
  for (const JsonNode element : types.elements()) {
    const std::string type = json_string(element, fields.where(), "layer_types");
    if (type != "full_attention" && type != other) {
      throw Error("{}: 'layer_types': expected 'full_attention' or '{}', found '{}'",
                  fields.where(), other, printable(type));
    }
    attends.push_back(type == "full_attention");
  }
  return attends;
}

std::optional<std::vector<bool>> parse_listed_layers(const ConfigFields& fields,
                                                     std::string_view key, std::size_t n_layers) {
  const std::optional<JsonNode> list = fields.find(key);
  if (!list) return std::nullopt;
  if (!list->is_array()) {
    throw Error("{}: '{}': expected an array of layers, found {}", fields.where(), key,
                list->describe());
  }
  std::vector<bool> listed(n_layers);
  for (const JsonNode layer : list->elements()) {
    listed[json_size(layer, fields.where(), key, 0, n_layers - 1)] = true;
  }
  return listed;
}

std::vector<bool> every_nth_layer(std::size_t n_layers, std::size_t n) {
  std::vector<bool> chosen(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) chosen[i] = (i + 1) % n == 0;
  return chosen;
}

std::size_t parse_window(const ConfigFields& fields, std::size_t default_value) {
  if (!fields.is_null("sliding_window")) return fields.size_or("sliding_window", default_value);
  throw Error("{}: 'sliding_window': expected a size, found null", fields.where());
}

std::size_t parse_max_window_layers(const ConfigFields& fields) {
  return fields.has("layer_types") ? 0 : fields.size_or("max_window_layers", 28, 0);
}

std::vector<std::size_t> parse_sliding_layers(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t window,
                                              const std::function<bool(std::size_t)>& slides) {
  std::vector<std::size_t> windows(n_layers, 0);
  if (!fields.has("layer_types")) {
    for (std::size_t i = 0; i < n_layers; ++i) windows[i] = slides(i) ? window : 0;
    return windows;
  }
  const std::vector<bool> full = parse_attention_layers(fields, n_layers, "sliding_attention");
  for (std::size_t i = 0; i < n_layers; ++i) {
    if (full[i]) continue;
    if (window == 0) {
      throw Error("{}: 'layer_types': layer {} has a window, but 'sliding_window' gives no size",
                  fields.where(), i);
    }
    windows[i] = window;
  }
  return windows;
}

std::vector<std::size_t> parse_window_pattern(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t pattern, std::size_t default_value) {
  const bool none = fields.is_null("sliding_window") && fields.has("layer_types");
  return parse_sliding_layers(fields, n_layers, none ? 0 : parse_window(fields, default_value),
                              [&](std::size_t i) { return (i + 1) % pattern != 0; });
}

}  // namespace stagecraft
