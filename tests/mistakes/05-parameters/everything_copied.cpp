// Mistake: F32 tensors copied like the others.
#include "model/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "model/named_tensors.h"
#include "operators/widen.h"

namespace stagecraft {
namespace {

using Shape = std::vector<std::size_t>;

const StoredTensor& take(NamedTensors& tensors, const std::string& name, const Shape& shape) {
  const StoredTensor* tensor = tensors.take(name);
  if (tensor == nullptr) throw Error("'{}' is missing", name);
  if (tensor->shape != shape) {
    throw Error("'{}' is {}, not {}", name, shape_text(tensor->shape), shape_text(shape));
  }
  return *tensor;
}

const float* as_f32(const StoredTensor& tensor, Parameters& parameters) {
  if (tensor.dtype == DType::F32) {
    std::vector<float> copy;
    const auto values = elements(tensor, copy);
    Matrix<float>& kept = parameters.widened.emplace_back(1, values.size());
    std::ranges::copy(values, kept.data());
    return kept.data();
  }
  std::vector<std::uint16_t> copy;
  const auto words = elements(tensor, copy);
  Matrix<float>& wide = parameters.widened.emplace_back(1, words.size());
  if (tensor.dtype == DType::F16) {
    widen_f16(words, wide.view().row(0));
  } else if (tensor.dtype == DType::BF16) {
    widen_bf16(words, wide.view().row(0));
  } else {
    throw Error("'{}' is {}", tensor.name, dtype_name(tensor.dtype));
  }
  return wide.data();
}

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  NamedTensors tensors(checkpoint);
  Parameters parameters;
  const auto vector = [&](const std::string& name, std::size_t n) {
    return std::span(as_f32(take(tensors, name, {n}), parameters), n);
  };
  const auto matrix = [&](const std::string& name, std::size_t rows, std::size_t cols) {
    const float* values = as_f32(take(tensors, name, {rows, cols}), parameters);
    return MatrixView<const float>(values, rows, cols);
  };
  const auto linear = [&](const std::string& name, std::size_t outputs, std::size_t inputs,
                          bool bias) {
    Linear result;
    result.weight = matrix(name + ".weight", outputs, inputs);
    if (bias) result.bias = vector(name + ".bias", outputs);
    return result;
  };

  const std::string embedding = "model.embed_tokens.weight";
  const std::string head = "lm_head.weight";
  const bool one_table = config.tied_embeddings && !(tensors.has(embedding) && tensors.has(head));
  const bool called_head = one_table && tensors.has(head);
  parameters.embedding = matrix(called_head ? head : embedding, config.vocab_size, config.dim);
  for (std::size_t i = 0; i < config.n_layers; ++i) {
    const std::string name = "model.layers." + std::to_string(i) + ".";
    const std::string attention = name + "self_attn.";
    LayerParameters layer;
    layer.attention.norm = vector(name + "input_layernorm.weight", config.dim);
    layer.attention.q = linear(attention + "q_proj", config.q_dim(), config.dim, config.qkv_bias);
    layer.attention.k = linear(attention + "k_proj", config.kv_dim(), config.dim, config.qkv_bias);
    layer.attention.v = linear(attention + "v_proj", config.kv_dim(), config.dim, config.qkv_bias);
    layer.attention.o = linear(attention + "o_proj", config.dim, config.q_dim(), config.o_bias);
    if (config.qk_norm) {
      layer.attention.q_norm = vector(attention + "q_norm.weight", config.head_dim);
      layer.attention.k_norm = vector(attention + "k_norm.weight", config.head_dim);
    }
    layer.mlp.norm = vector(name + "post_attention_layernorm.weight", config.dim);
    layer.mlp.gate = linear(name + "mlp.gate_proj", config.ffn_dim, config.dim, config.mlp_bias);
    layer.mlp.up = linear(name + "mlp.up_proj", config.ffn_dim, config.dim, config.mlp_bias);
    layer.mlp.down = linear(name + "mlp.down_proj", config.dim, config.ffn_dim, config.mlp_bias);
    parameters.layers.push_back(layer);
  }
  parameters.final_norm = vector("model.norm.weight", config.dim);
  parameters.lm_head.weight =
      one_table ? parameters.embedding : matrix(head, config.vocab_size, config.dim);
  tensors.refuse_leftovers();
  return parameters;
}

}  // namespace stagecraft
