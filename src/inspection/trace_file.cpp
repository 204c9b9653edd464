#include "inspection/trace_file.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/json.h"
#include "base/number.h"

namespace stagecraft {
namespace {

std::vector<std::string> parse_order(const std::map<std::string, std::string>& metadata,
                                     const std::string& file) {
  std::vector<std::string> order;
  const auto text = metadata.find("order");
  if (text == metadata.end()) return order;
  const std::string where = file + ": __metadata__.order";
  const Json json(text->second, where);
  const JsonNode names = json.root();
  if (!names.is_array() || names.size() == 0) {
    throw Error("{}: expected a list of tensor names, found {}", where, names.describe());
  }
  std::set<std::string> seen;
  for (const JsonNode name : names.elements()) {
    order.push_back(json_string(name, where, "order"));
    if (!seen.insert(order.back()).second) {
      throw Error("{}: '{}' is listed twice", where, printable(order.back()));
    }
  }
  return order;
}

struct TraceName {
  std::string prefix;  // "layers.3.", or empty
  std::string layer;   // "3", or empty
  std::string_view step;
};

TraceName split(std::string_view name) {
  constexpr std::string_view kLayers = "layers.";
  if (!name.starts_with(kLayers)) return {"", "", name};
  const std::size_t dot = name.find('.', kLayers.size());
  if (dot == std::string_view::npos) return {"", "", name};
  const auto layer = integer_of<std::size_t>(name.substr(kLayers.size(), dot - kLayers.size()));
  if (!layer) return {"", "", name};
  return {std::string(name.substr(0, dot + 1)), std::to_string(*layer), name.substr(dot + 1)};
}

bool is_split_in_heads(std::string_view step) {
  constexpr std::array<std::string_view, 8> kSteps = {"q",      "k",      "v",      "q_norm",
                                                      "k_norm", "q_rope", "k_rope", "attn_out"};
  return std::find(kSteps.begin(), kSteps.end(), step) != kSteps.end();
}

// The index of an element in each dimension of its tensor.
std::vector<std::size_t> coordinates(std::span<const std::size_t> shape, std::size_t index) {
  std::vector<std::size_t> at(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    at[d] = index % shape[d];
    index /= shape[d];
  }
  return at;
}

// A trace does not contain head_dim, but the number of heads and the width of q.
std::size_t head_dim_of(const TraceFile& file, const std::string& prefix) {
  const StoredTensor* q = file.find(prefix + "q");
  const StoredTensor* probabilities = file.find(prefix + "attn_probs");
  if (q == nullptr || probabilities == nullptr) return 0;
  if (q->shape.size() != 2 || probabilities->shape.size() != 3) return 0;
  const std::size_t n_heads = probabilities->shape[0];
  return n_heads != 0 && q->shape[1] % n_heads == 0 ? q->shape[1] / n_heads : 0;
}

void check_names(const TraceFile& a, const TraceFile& b) {
  if (a.order().empty()) {
    throw Error("{}: expected a trace, found no '__metadata__.order'", a.name());
  }
  for (const std::string& name : a.order()) {
    if (a.tensor(name).shape != b.tensor(name).shape) {
      throw Error("{}: tensor '{}': expected {} as in {}, found {}", b.name(), printable(name),
                  shape_text(a.tensor(name).shape), a.name(), shape_text(b.tensor(name).shape));
    }
  }
}

Comparison compare_named(const TraceFile& a, const TraceFile& b, const std::string& name,
                         Tolerance tolerance) {
  try {
    return compare_tensors(a.tensor(name), b.tensor(name), tolerance);
  } catch (const Error& problem) {
    throw Error("{} and {}: {}", a.name(), b.name(), problem.what());
  }
}

}  // namespace

TraceFile::TraceFile(const std::filesystem::path& path)
    : name_(path.string()), file_(path), order_(parse_order(file_.metadata(), name_)) {}

const StoredTensor* TraceFile::find(const std::string& name) const { return file_.find(name); }

const StoredTensor& TraceFile::tensor(const std::string& name) const {
  const StoredTensor* found = find(name);
  if (found == nullptr) throw Error("{}: tensor '{}' is missing", name_, printable(name));
  return *found;
}

TraceComparison compare_traces(const TraceFile& a, const TraceFile& b, Tolerance tolerance) {
  check_names(a, b);
  TraceComparison all;
  all.tensors = a.order().size();
  all.only_in_b = static_cast<std::size_t>(std::ranges::count_if(
      b.order(), [&](const std::string& name) { return a.find(name) == nullptr; }));
  for (const std::string& name : a.order()) {
    const Comparison result = compare_named(a, b, name, tolerance);
    all.values += result.count;
    all.nan += std::min(result.nan_a, result.nan_b);
    if (all.name.empty() || result.differing != 0 ||
        result.worst.size() > all.result.worst.size()) {
      all.name = name;
      all.result = result;
    }
    if (result.differing != 0) break;
    ++all.agreeing;
  }
  const StoredTensor& tensor = a.tensor(all.name);
  const std::size_t head_dim = head_dim_of(a, split(all.name).prefix);
  const auto place = [&](const Gap& gap) {
    return tensor.bytes.empty() ? std::string()
                                : place_in_trace(all.name, tensor.shape, gap.index, head_dim);
  };
  if (all.result.differing != 0) all.first_place = place(all.result.first);
  all.worst_place = place(all.result.worst);
  return all;
}

std::string place_in_trace(std::string_view name, std::span<const std::size_t> shape,
                           std::size_t index, std::size_t head_dim) {
  const std::vector<std::size_t> at = coordinates(shape, index);
  const TraceName parts = split(name);
  const std::string layer = parts.layer.empty() ? "" : fmt::format("layer {}, ", parts.layer);
  if (parts.step == "attn_probs" && at.size() == 3) {
    return fmt::format("{}head {}, query {}, key {}", layer, at[0], at[1], at[2]);
  }
  if (at.size() != 2) return fmt::format("index {}", shape_text(at));
  if (parts.step == "logits") return fmt::format("position {}, token {}", at[0], at[1]);
  if (is_split_in_heads(parts.step) && head_dim != 0) {
    return fmt::format("{}head {}, position {}, index {} of the head", layer, at[1] / head_dim,
                       at[0], at[1] % head_dim);
  }
  return fmt::format("{}position {}, index {}", layer, at[0], at[1]);
}

}  // namespace stagecraft
