#include "convert/tensor_plan.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/convert_tensor.h"
#include "checkpoint/rope_pairs.h"
#include "model/named_tensors.h"

namespace stagecraft {
namespace {

class Planner {
 public:
  Planner(const Config& config, const Checkpoint& checkpoint)
      : config_(config), tensors_(checkpoint) {}

  std::vector<PlannedTensor> run() {
    const std::vector<std::size_t> table = {config_.vocab_size, config_.dim};
    add_embedding(table);
    for (std::size_t i = 0; i < config_.n_layers; ++i) {
      add_layer(fmt::format("model.layers.{}.", i));
    }
    add("model.norm.weight", {config_.dim});
    if (has_own_head()) add(kHead, table);
    tensors_.take(kHead);
    tensors_.refuse_leftovers();
    return std::move(plan_);
  }

 private:
  // Files store the one table of a tied model under either name.
  void add_embedding(const std::vector<std::size_t>& shape) {
    const bool under_other_name =
        config_.tied_embeddings && tensors_.has(kHead) && !tensors_.has(kEmbedding);
    add(under_other_name ? kHead : kEmbedding, shape);
    plan_.back().name = kEmbedding;
  }

  bool has_own_head() {
    if (!config_.tied_embeddings) return true;
    const StoredTensor* head = tensors_.take(kHead);
    const StoredTensor* table = tensors_.take(kEmbedding);
    if (head == nullptr || table == nullptr) return false;
    return head->dtype != table->dtype || !std::ranges::equal(head->bytes, table->bytes);
  }

  void add_layer(const std::string& layer) {
    const std::size_t dim = config_.dim, q = config_.q_dim(), kv = config_.kv_dim();
    const std::string attention = layer + "self_attn.", mlp = layer + "mlp.";
    add(layer + "input_layernorm.weight", {dim});
    add_linear(attention + "q_proj", q, dim, config_.qkv_bias);
    add_linear(attention + "k_proj", kv, dim, config_.qkv_bias);
    add_linear(attention + "v_proj", kv, dim, config_.qkv_bias);
    if (config_.qk_norm) {
      add(attention + "q_norm.weight", {config_.head_dim});
      add(attention + "k_norm.weight", {config_.head_dim});
    }
    add_linear(attention + "o_proj", dim, q, config_.o_bias);
    add(layer + "post_attention_layernorm.weight", {dim});
    add_linear(mlp + "gate_proj", config_.ffn_dim, dim, config_.mlp_bias);
    add_linear(mlp + "up_proj", config_.ffn_dim, dim, config_.mlp_bias);
    add_linear(mlp + "down_proj", dim, config_.ffn_dim, config_.mlp_bias);
  }

  void add_linear(const std::string& name, std::size_t outputs, std::size_t inputs, bool bias) {
    add(name + ".weight", {outputs, inputs});
    if (bias) add(name + ".bias", {outputs});
  }

  void add(const std::string& name, const std::vector<std::size_t>& shape) {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr || tensor->shape != shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors_.where(), name,
                  shape_text(shape), tensor == nullptr ? "none" : shape_text(tensor->shape));
    }
    plan_.push_back({name, tensor, tensor->dtype});
  }

  static constexpr const char* kEmbedding = "model.embed_tokens.weight";
  static constexpr const char* kHead = "lm_head.weight";
  const Config& config_;
  NamedTensors tensors_;
  std::vector<PlannedTensor> plan_;
};

}  // namespace

std::vector<PlannedTensor> plan_tensors(const Config& config, const Checkpoint& checkpoint) {
  return Planner(config, checkpoint).run();
}

void write_tensor(const PlannedTensor& tensor, const Checkpoint& checkpoint,
                  const std::function<void(std::span<const std::byte>)>& sink) {
  StoredTensor stored = *tensor.stored;
  std::vector<std::byte> reordered;
  if (tensor.pairs != 0) {
    reordered = pairs_from_halves(stored.bytes, stored.shape.front(), tensor.pairs);
    stored.bytes = reordered;
  }
  convert_tensor(stored, tensor.dtype, checkpoint.name(), sink);
  checkpoint.release_pages();
}

}  // namespace stagecraft
