#include "checkpoint/gguf_weights.h"

#include <algorithm>
#include <array>
#include <utility>

namespace stagecraft {
namespace {

using Names = std::pair<std::string_view, std::string_view>;  // GGUF's and Hugging Face's

constexpr std::array<Names, 3> kModelNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};

constexpr std::array<Names, 11> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};

std::string_view find_name(std::span<const Names> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Names::first);
  return found == names.end() ? std::string_view() : found->second;
}

// "blk.3.attn_q.weight" in its parts; without "blk.3." there is no layer.
struct GgufName {
  std::string_view layer;  // "3"
  std::string_view part;   // "attn_q"
  std::string_view kind;   // ".weight"

  explicit GgufName(std::string_view name) {
    kind = name.substr(std::min(name.rfind('.'), name.size()));
    part = name.substr(0, name.size() - kind.size());
    constexpr std::string_view kLayer = "blk.";
    const std::size_t dot = part.find('.', kLayer.size());
    if (!part.starts_with(kLayer) || dot == std::string_view::npos) return;
    layer = part.substr(kLayer.size(), dot - kLayer.size());
    part.remove_prefix(dot + 1);
  }
};

std::string hugging_face_name(const std::string& name) {
  const GgufName parts(name);
  const bool in_layer = !parts.layer.empty();
  const std::string_view found =
      in_layer ? find_name(kLayerNames, parts.part) : find_name(kModelNames, parts.part);
  if (found.empty()) return name;
  if (!in_layer) return fmt::format("{}{}", found, parts.kind);
  return fmt::format("model.layers.{}.{}{}", parts.layer, found, parts.kind);
}

std::string_view find_gguf_name(std::span<const Names> names, std::string_view name) {
  const auto found = std::ranges::find(names, name, &Names::second);
  return found == names.end() ? std::string_view() : found->first;
}

}  // namespace

std::string gguf_name(const std::string& hugging_face_name) {
  const std::size_t dot = std::min(hugging_face_name.rfind('.'), hugging_face_name.size());
  std::string_view part = std::string_view(hugging_face_name).substr(0, dot);
  const std::string_view kind = std::string_view(hugging_face_name).substr(dot);
  constexpr std::string_view kLayers = "model.layers.";
  if (!part.starts_with(kLayers)) {
    const std::string_view found = find_gguf_name(kModelNames, part);
    return found.empty() ? "" : fmt::format("{}{}", found, kind);
  }
  part.remove_prefix(kLayers.size());
  const std::size_t end = std::min(part.find('.'), part.size());
  const std::string_view found =
      find_gguf_name(kLayerNames, part.substr(std::min(end + 1, part.size())));
  return found.empty() ? "" : fmt::format("blk.{}.{}{}", part.substr(0, end), found, kind);
}

GgufWeights::GgufWeights(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {
  const GgufMetadata& metadata = file_->metadata();
  if (metadata.has("split.count") && metadata.size("split.count", 0, SIZE_MAX >> 1) > 1) {
    metadata.refuse("split.count", "a model in one file (merge the parts)");
  }
  const bool pairs = metadata.text("general.architecture") == "llama";
  for (const StoredTensor& stored : file_->tensors()) {
    if (stored.name == kGgufRopeFactors) continue;
    StoredTensor tensor = stored;
    tensor.name = hugging_face_name(stored.name);
    const std::string_view part = GgufName(stored.name).part;
    if (pairs && (part == "attn_q" || part == "attn_k")) {
      const std::string_view kv_heads = "llama.attention.head_count_kv";
      const bool own = part == "attn_k" && metadata.has(kv_heads);
      reorder_pairs(tensor, metadata.size(own ? kv_heads : "llama.attention.head_count", 1,
                                          std::size_t{1} << 24));
    }
    tensors_.push_back(std::move(tensor));
  }
}

void GgufWeights::reorder_pairs(StoredTensor& tensor, std::size_t n_heads) {
  const std::size_t rows = tensor.shape.front();
  // Of another shape than the model has room for, or a bias in blocks: it will be refused by its
  // shape when the model is loaded.
  if (rows % (2 * n_heads) != 0 || tensor.bytes.size() % rows != 0) return;
  tensor.bytes = reordered_.emplace_back(halves_from_pairs(tensor.bytes, rows, n_heads));
}

}  // namespace stagecraft
