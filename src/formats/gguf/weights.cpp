#include "formats/gguf/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/config_fields.h"
#include "base/number.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/rope_pairs.h"

namespace stagecraft {
namespace {

using Names = std::span<const GgufTensorName>;
constexpr std::string_view kPredicting = "mtp.";
constexpr std::size_t kMaxParts = 1u << 16;    // experts or heads
constexpr std::size_t kMaxTensors = 1u << 18;  // with those of all experts; DeepSeek-V3: 62,000

const GgufTensorName* find_name(Names names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &GgufTensorName::gguf);
  return found == names.end() ? nullptr : &*found;
}

// A name such as "blk.3.attn_q.weight", cut into its components.
struct GgufName {
  std::string_view layer;  // "3"; empty if the name does not begin with "blk."
  std::string_view whole;  // "attn_q.weight"
  std::string_view part;   // "attn_q"
  std::string_view kind;   // ".weight", ".bias" or empty

  explicit GgufName(std::string_view name) : part(name) {
    constexpr std::string_view kLayer = "blk.";
    const std::size_t dot = part.find('.', kLayer.size());
    if (part.starts_with(kLayer) && dot != std::string_view::npos) {
      layer = part.substr(kLayer.size(), dot - kLayer.size());
      part.remove_prefix(dot + 1);
    }
    whole = part;
    for (const std::string_view ending : {".weight", ".bias"}) {
      if (part.ends_with(ending)) kind = ending;
    }
    part.remove_suffix(kind.size());
  }

  // nullptr if the name is unknown. An entry whose name includes the kind takes precedence.
  const GgufTensorName* find(const GgufArchitecture& architecture) const {
    if (const auto* own = find_name(architecture.names, whole); own != nullptr) return own;
    if (const auto* own = find_name(architecture.names, part); own != nullptr) return own;
    return find_name(layer.empty() ? gguf_model_names() : gguf_layer_names(), part);
  }

  // The whole name in a Hugging Face checkpoint. name: known.hugging_face with "{}" filled in.
  std::string hugging_face(const GgufTensorName& known, std::string_view name,
                           std::string_view layers) const {
    const std::string_view ending = known.gguf == whole ? "" : kind;
    if (layer.empty()) return fmt::format("{}{}", name, ending);
    return fmt::format("{}{}.{}{}", layers, layer, name, ending);
  }
};

// "model.layers.3.mlp.up_proj.weight" -> "blk.3." and "mlp.up_proj.weight", if `layers` is
// "model.layers."; outside the layers, "" and the whole name.
std::pair<std::string, std::string_view> split_layer(std::string_view name,
                                                     std::string_view layers) {
  if (!name.starts_with(layers)) return {"", name};
  name.remove_prefix(layers.size());
  const std::size_t dot = std::min(name.find('.'), name.size());
  return {fmt::format("blk.{}.", name.substr(0, dot)), name.substr(std::min(dot + 1, name.size()))};
}

// Matches a Hugging Face name with known.hugging_face. Returns the text that stands for "{}" ("q",
// or the number of an expert or head), "" if the entry has no "{}", or nullopt if the name does not
// match.
std::optional<std::string_view> part_of(const GgufTensorName& known, std::string_view name) {
  const std::string_view pattern = known.hugging_face;
  const std::size_t begin = pattern.find("{}");
  if (begin == pattern.npos) {
    return name == pattern ? std::optional(std::string_view()) : std::nullopt;
  }
  const std::string_view end = pattern.substr(begin + 2);
  const bool fits = name.size() > begin + end.size() && name.ends_with(end) &&
                    name.starts_with(pattern.substr(0, begin));
  if (!fits) return std::nullopt;
  const std::string_view part = name.substr(begin, name.size() - end.size() - begin);
  const bool is_third = known.change == GgufTensorName::Change::Thirds;
  const std::string_view letters = is_third ? "qkv" : "0123456789";
  if (part.find_first_not_of(letters) != part.npos) return std::nullopt;
  return part;
}

void add_dimension(GgufTensorName::Change how, std::vector<std::size_t>& shape) {
  if (how == GgufTensorName::Change::OneRow && shape.size() == 1) shape.insert(shape.begin(), 1);
  if (how == GgufTensorName::Change::Taps && shape.size() == 2) shape.insert(shape.end() - 1, 1);
}

// The weight of a norm that is stored as 1 + weight. Exact if the stored number is at least 1/2.
// Below 1/2, the model, which adds 1 again, gets the stored number to within 2^-25.
float minus_one(float stored) { return stored - 1.0f; }

// The number of heads in q, or in k.
std::size_t head_count(const GgufMetadata& metadata, std::string_view architecture, bool of_keys) {
  const std::string heads = fmt::format("{}.attention.head_count", architecture);
  const std::string own = heads + "_kv";
  return metadata.size_of_layers(of_keys && metadata.has(own) ? own : heads, kMaxDimension);
}

}  // namespace

std::string gguf_name(const std::string& hugging_face_name) {
  const auto [layer, part] = split_layer(hugging_face_name, "model.layers.");
  const std::size_t dot = std::min(part.rfind('.'), part.size());
  const Names names = layer.empty() ? gguf_model_names() : gguf_layer_names();
  const auto found = std::ranges::find(names, part.substr(0, dot), &GgufTensorName::hugging_face);
  return found == names.end() ? "" : fmt::format("{}{}{}", layer, found->gguf, part.substr(dot));
}

GgufWeights::GgufWeights(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {
  const GgufMetadata& metadata = file_->metadata();
  if (metadata.has("split.count") && metadata.size("split.count", 0, SIZE_MAX >> 1) > 1) {
    metadata.refuse("split.count", "a model in one file (merge the parts)");
  }
  // The tensors of an architecture that cannot be run can still be listed.
  static constexpr GgufArchitecture kUnknown{};
  const GgufArchitecture* known = find_gguf_architecture(*file_);
  if (known != nullptr) n_layers_ = gguf_first_predicting_layer(metadata, *known);
  architecture_ = known == nullptr ? &kUnknown : known;
  for (const StoredTensor& stored : file_->tensors()) add(stored, *architecture_);
}

std::string GgufWeights::stored_name(const std::string& name) const {
  if (name.starts_with(kPredicting)) return name.substr(kPredicting.size());
  const auto [layer, rest] = split_layer(name, architecture_->layers);
  std::string first;
  const Names common = layer.empty() ? gguf_model_names() : gguf_layer_names();
  for (const Names names : {architecture_->names, common}) {
    for (const GgufTensorName& known : names) {
      const bool is_own = names.data() == architecture_->names.data();
      if (!is_own && find_name(architecture_->names, known.gguf) != nullptr) continue;
      for (const std::string_view kind : {"", ".weight", ".bias"}) {
        if (!rest.ends_with(kind)) continue;
        const auto part = part_of(known, rest.substr(0, rest.size() - kind.size()));
        if (!part) continue;
        const std::string stored = fmt::format("{}{}{}", layer, known.gguf, kind);
        const std::string with_part = part->empty() ? stored : fmt::format("{}[{}]", stored, *part);
        if (file_->find(stored) != nullptr) return with_part;
        if (first.empty()) first = with_part;
      }
    }
  }
  return first.empty() || file_->find(name) != nullptr ? name : first;
}

void GgufWeights::add(const StoredTensor& stored, const GgufArchitecture& architecture) {
  const GgufName name(stored.name);
  const GgufTensorName* known = name.find(architecture);
  if (architecture.rope_factors != GgufArchitecture::RopeFactors::None &&
      stored.name == kGgufRopeFactors) {
    return;
  }
  if (const auto layer = integer_of<std::size_t>(name.layer); layer && *layer >= n_layers_) {
    tensors_.push_back(stored);
    tensors_.back().name = std::string(kPredicting) + stored.name;
    return;
  }
  const auto name_of = [&](auto part) {
    const std::string filled = fmt::format(fmt::runtime(known->hugging_face), part);
    return name.hugging_face(*known, filled, architecture.layers);
  };
  using Change = GgufTensorName::Change;
  const Change change = known == nullptr ? Change::None : known->change;
  if (change == Change::Thirds) return add_thirds(stored, architecture, name_of);
  if (change == Change::Experts) {
    return add_each(stored, fmt::format("{}.expert_count", architecture.name), "experts", name_of);
  }
  if (change == Change::Heads) {
    return add_each(stored, fmt::format("{}.attention.head_count", architecture.name), "heads",
                    name_of);
  }
  StoredTensor tensor = stored;
  if (known != nullptr) {
    tensor.name = name.hugging_face(*known, known->hugging_face, architecture.layers);
  }
  add_dimension(change, tensor.shape);
  if (architecture.pairs && (name.part == "attn_q" || name.part == "attn_k")) {
    reorder_pairs(tensor, head_count(file_->metadata(), architecture.name, name.part == "attn_k"));
  }
  const bool plus_one = name.part.ends_with("_norm") && change != Change::AsStored;
  if (architecture.norms_plus_one && plus_one) replace(tensor, minus_one);
  if (change == Change::MinusExp) {
    // The model computes exp(x) from this: minus the stored number, except for its last bits.
    replace(tensor, [&](float value) {
      if (value < 0.0f) return std::log(-value);
      throw Error("{}: tensor '{}': expected numbers below 0, found {}", file_->metadata().file(),
                  stored.name, value);
    });
  }
  tensors_.push_back(std::move(tensor));
}

void GgufWeights::add_each(const StoredTensor& stored, const std::string& key,
                           std::string_view parts,
                           const std::function<std::string(std::size_t)>& name) {
  const std::size_t n = file_->metadata().size(key, 1, kMaxParts);
  const bool is_bias = stored.name.ends_with(".bias");
  if (stored.shape.size() != (is_bias ? 2 : 3) || stored.shape.front() != n) {
    throw Error("{}: tensor '{}': expected a {} for each of {} {} ('{}'), found {}",
                file_->metadata().file(), stored.name, is_bias ? "bias" : "matrix", n, parts, key,
                shape_text(stored.shape));
  }
  if (tensors_.size() + n > kMaxTensors) {
    throw Error("{}: tensor '{}': expected at most {} matrices in all, found more",
                file_->metadata().file(), stored.name, kMaxTensors);
  }
  const std::size_t bytes = stored.bytes.size() / n;
  for (std::size_t i = 0; i < n; ++i) {
    tensors_.push_back({name(i),
                        stored.dtype,
                        {stored.shape.begin() + 1, stored.shape.end()},
                        stored.bytes.subspan(i * bytes, bytes)});
  }
}

void GgufWeights::add_thirds(const StoredTensor& stored, const GgufArchitecture& architecture,
                             const std::function<std::string(std::string_view)>& name) {
  const GgufMetadata& metadata = file_->metadata();
  const std::size_t n_heads = head_count(metadata, architecture.name, false);
  const std::size_t n_kv_heads = head_count(metadata, architecture.name, true);
  const std::size_t heads = n_heads + 2 * n_kv_heads, rows = stored.shape.front();
  if (rows % heads != 0 || stored.bytes.size() % rows != 0) {
    throw Error("{}: tensor '{}': expected rows for {} heads of q, k and v, found {}",
                metadata.file(), stored.name, heads, shape_text(stored.shape));
  }
  std::size_t first = 0;
  const std::size_t bytes = stored.bytes.size() / rows;
  for (const std::string_view part : {"q", "k", "v"}) {
    StoredTensor third = stored;
    third.name = name(part);
    third.shape.front() = rows / heads * (part == "q" ? n_heads : n_kv_heads);
    third.bytes = stored.bytes.subspan(first * bytes, third.shape.front() * bytes);
    first += third.shape.front();
    tensors_.push_back(std::move(third));
  }
}

void GgufWeights::reorder_pairs(StoredTensor& tensor, std::size_t n_heads) {
  const std::size_t rows = tensor.shape.front();
  if (tensor.bytes.size() % rows != 0) refuse_type(tensor);  // a quantised bias
  if (rows % (2 * n_heads) != 0) return;                     // the loader refuses this shape
  tensor.bytes = keep(halves_from_pairs(tensor.bytes, rows, n_heads));
}

void GgufWeights::refuse_type(const StoredTensor& tensor) const {
  throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", file_->metadata().file(),
              stored_name(tensor.name), dtype_name(tensor.dtype));
}

void GgufWeights::replace(StoredTensor& tensor, const std::function<float(float)>& change) {
  if (!is_float(tensor.dtype)) refuse_type(tensor);
  std::vector<std::byte> copy;
  convert_tensor(tensor, DType::F32, file_->metadata().file(),
                 [&](auto piece) { copy.insert(copy.end(), piece.begin(), piece.end()); });
  for (std::size_t at = 0; at < copy.size(); at += sizeof(float)) {
    float value = 0.0f;
    std::memcpy(&value, &copy[at], sizeof value);
    value = change(value);
    std::memcpy(&copy[at], &value, sizeof value);
  }
  tensor.dtype = DType::F32;
  tensor.bytes = keep(std::move(copy));
}

}  // namespace stagecraft
