// load_parameters as many would write it, right in every step. The programs about it override the
// step in which they are wrong, or do it in another way.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/named_tensors.h"
#include "model/parameters.h"
#include "operators/dequantize.h"
#include "operators/half_to_float.h"

namespace stagecraft {

class Loader {
 public:
  Loader(const Config& config, const Checkpoint& checkpoint)
      : config_(config), tensors_(checkpoint) {}
  virtual ~Loader() = default;

  Parameters load() {
    load_all();
    refuse_leftovers();
    return std::move(parameters_);
  }

 protected:
  using Shape = std::vector<std::size_t>;
  using Words = std::span<const std::uint16_t>;

  static constexpr const char* kEmbedding = "model.embed_tokens.weight";
  static constexpr const char* kHead = "lm_head.weight";

  // ---- a tensor ----

  virtual const StoredTensor& take(const std::string& name, const Shape& shape) {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr) throw Error("'{}' is missing", name);
    if (tensor->shape != shape) {
      throw Error("'{}' is {}, not {}", name, shape_text(tensor->shape), shape_text(shape));
    }
    return *tensor;
  }

  // Where they lie in the file; `copy` holds them where that is no place for f32.
  virtual const float* use(std::span<const float> values, const std::vector<float>& copy) {
    return copy.empty() ? values.data() : keep(values);
  }
  const float* keep(std::span<const float> values) {
    Matrix<float>& kept = parameters_.converted.emplace_back(1, values.size());
    std::ranges::copy(values, kept.data());
    return kept.data();
  }

  virtual void to_f32(const StoredTensor& tensor, Words words, std::span<float> out) {
    if (tensor.dtype == DType::F16) {
      f16_to_f32(words, out);
    } else if (tensor.dtype == DType::BF16) {
      bf16_to_f32(words, out);
    } else {
      refuse(tensor);
    }
  }
  [[noreturn]] static void refuse(const StoredTensor& tensor) {
    throw Error("'{}' is {}", tensor.name, dtype_name(tensor.dtype));
  }

  virtual const float* quantized(const StoredTensor& tensor) {
    Matrix<float>& numbers = parameters_.converted.emplace_back(1, element_count(tensor));
    dequantize(tensor.dtype, tensor.bytes, numbers.view().row(0));
    return numbers.data();
  }

  const float* as_f32(const StoredTensor& tensor) {
    if (tensor.dtype == DType::F32) {
      std::vector<float> copy;
      const auto values = elements(tensor, copy);
      return use(values, copy);
    }
    if (is_quantized(tensor.dtype)) return quantized(tensor);
    std::vector<std::uint16_t> copy;
    const auto words = elements(tensor, copy);
    Matrix<float>& wide = parameters_.converted.emplace_back(1, words.size());
    to_f32(tensor, words, wide.view().row(0));
    return wide.data();
  }

  std::span<const float> vector(const std::string& name, std::size_t n) {
    return std::span(as_f32(take(name, {n})), n);
  }
  MatrixView<const float> matrix(const std::string& name, std::size_t rows, std::size_t cols) {
    return {as_f32(take(name, {rows, cols})), rows, cols};
  }
  virtual Linear linear(const std::string& name, std::size_t outputs, std::size_t inputs,
                        bool bias) {
    Linear result;
    result.weight = matrix(name + ".weight", outputs, inputs);
    if (bias) result.bias = vector(name + ".bias", outputs);
    return result;
  }

  virtual void load_all() {
    load_embedding();
    load_layers();
    load_final_norm();
    load_head();
  }
  void load_embedding() {
    parameters_.embedding = matrix(embedding_name(), config_.vocab_size, config_.dim);
  }
  void load_final_norm() { parameters_.final_norm = vector("model.norm.weight", config_.dim); }
  void load_head() { parameters_.lm_head.weight = head(); }

  // ---- the layers ----

  virtual void load_layers() {
    for (std::size_t i = 0; i < config_.n_layers; ++i) parameters_.layers.push_back(layer(i));
  }

  virtual std::string layer_name(std::size_t i) {
    return "model.layers." + std::to_string(i) + ".";
  }
  // What the file calls a part of a layer: "k_proj".
  virtual std::string part_name(const std::string& part) { return part; }

  virtual LayerParameters layer(std::size_t i) {
    const std::string name = layer_name(i);
    const auto part = [&](const char* of, const char* what) { return name + of + part_name(what); };
    const Config& c = config_;
    LayerParameters p;
    p.attention.norm = vector(part("", "input_layernorm") + ".weight", c.dim);
    p.attention.q = linear(part("self_attn.", "q_proj"), c.q_dim(), c.dim, c.qkv_bias);
    p.attention.k = linear(part("self_attn.", "k_proj"), c.kv_dim(), c.dim, c.qkv_bias);
    p.attention.v = linear(part("self_attn.", "v_proj"), c.kv_dim(), c.dim, c.qkv_bias);
    p.attention.o = linear(part("self_attn.", "o_proj"), c.dim, c.q_dim(), c.o_bias);
    if (c.qk_norm) {
      p.attention.q_norm = vector(part("self_attn.", "q_norm") + ".weight", c.head_dim);
      p.attention.k_norm = vector(part("self_attn.", "k_norm") + ".weight", c.head_dim);
    }
    p.mlp.norm = vector(part("", "post_attention_layernorm") + ".weight", c.dim);
    p.mlp.gate = linear(part("mlp.", "gate_proj"), c.ffn_dim, c.dim, c.mlp_bias);
    p.mlp.up = linear(part("mlp.", "up_proj"), c.ffn_dim, c.dim, c.mlp_bias);
    p.mlp.down = linear(part("mlp.", "down_proj"), c.dim, c.ffn_dim, c.mlp_bias);
    return p;
  }

  // ---- the two tables, or the one ----

  virtual bool is_one_table() {
    return config_.tied_embeddings && !(tensors_.has(kEmbedding) && tensors_.has(kHead));
  }
  virtual std::string embedding_name() {
    return is_one_table() && tensors_.has(kHead) ? kHead : kEmbedding;
  }
  virtual MatrixView<const float> head() {
    return is_one_table() ? parameters_.embedding : matrix(kHead, config_.vocab_size, config_.dim);
  }

  virtual void refuse_leftovers() { tensors_.refuse_leftovers(); }

  const Config config_;
  NamedTensors tensors_;
  Parameters parameters_;
};

// `name`, where that is one of the two, the other one.
inline std::string exchanged(const std::string& name, const std::string& one,
                             const std::string& other) {
  if (name == one) return other;
  return name == other ? one : name;
}

}  // namespace stagecraft
