// This gives away stage 5: it is our answer to stages/05-parameters/parameters.cpp.
#include "model/parameters.h"

#include <algorithm>

#include "base/error.h"
#include "model/named_tensors.h"
#include "operators/dequantize.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

// Returns the tensors of a checkpoint as f32 and checks their shapes.
class Loader {
 public:
  Loader(NamedTensors& tensors, Parameters& parameters)
      : tensors_(tensors), parameters_(parameters) {}

  MatrixView<const float> matrix(const std::string& name, std::size_t rows, std::size_t cols) {
    return {f32(find(name, {rows, cols})), rows, cols};
  }
  std::span<const float> vector(const std::string& name, std::size_t size) {
    return {f32(find(name, {size})), size};
  }
  Linear linear(const std::string& name, std::size_t outputs, std::size_t inputs, bool bias) {
    Linear result;
    result.weight = matrix(name + ".weight", outputs, inputs);
    if (bias) result.bias = vector(name + ".bias", outputs);
    return result;
  }

 private:
  const StoredTensor& find(const std::string& name, const std::vector<std::size_t>& shape) {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor != nullptr && tensor->shape == shape) return *tensor;
    throw Error("{}: tensor '{}': expected {}, found {}", tensors_.where(), name, shape_text(shape),
                tensor == nullptr ? "none" : shape_text(tensor->shape));
  }

  const float* f32(const StoredTensor& tensor) {
    if (tensor.dtype == DType::F32) {
      std::vector<float> copy;
      const auto values = elements(tensor, copy);
      if (copy.empty()) return values.data();  // a view into the file
      const auto room = room_for(values.size());
      std::ranges::copy(values, room.begin());
      return room.data();
    }
    if (is_quantized(tensor.dtype)) {
      const auto room = room_for(element_count(tensor));
      dequantize(tensor.dtype, tensor.bytes, room);
      return room.data();
    }
    if (tensor.dtype != DType::F16 && tensor.dtype != DType::BF16) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", tensors_.where(),
                  tensor.name, dtype_name(tensor.dtype));
    }
    std::vector<std::uint16_t> copy;
    const auto words = elements(tensor, copy);
    const auto room = room_for(words.size());
    (tensor.dtype == DType::F16 ? f16_to_f32 : bf16_to_f32)(words, room);
    return room.data();
  }

  std::span<float> room_for(std::size_t n) {
    return {parameters_.converted.emplace_back(1, n).data(), n};
  }

  NamedTensors& tensors_;
  Parameters& parameters_;
};

AttentionParameters load_attention(Loader& load, const Config& config, const std::string& layer) {
  const std::string attn = layer + "self_attn.";
  AttentionParameters p;
  p.norm = load.vector(layer + "input_layernorm.weight", config.dim);
  p.q = load.linear(attn + "q_proj", config.q_dim(), config.dim, config.qkv_bias);
  p.k = load.linear(attn + "k_proj", config.kv_dim(), config.dim, config.qkv_bias);
  p.v = load.linear(attn + "v_proj", config.kv_dim(), config.dim, config.qkv_bias);
  if (config.qk_norm) {
    p.q_norm = load.vector(attn + "q_norm.weight", config.head_dim);
    p.k_norm = load.vector(attn + "k_norm.weight", config.head_dim);
  }
  p.o = load.linear(attn + "o_proj", config.dim, config.q_dim(), config.o_bias);
  return p;
}

MlpParameters load_mlp(Loader& load, const Config& config, const std::string& layer) {
  MlpParameters p;
  p.norm = load.vector(layer + "post_attention_layernorm.weight", config.dim);
  p.gate = load.linear(layer + "mlp.gate_proj", config.ffn_dim, config.dim, config.mlp_bias);
  p.up = load.linear(layer + "mlp.up_proj", config.ffn_dim, config.dim, config.mlp_bias);
  p.down = load.linear(layer + "mlp.down_proj", config.dim, config.ffn_dim, config.mlp_bias);
  return p;
}

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  const std::string embedding = "model.embed_tokens.weight";
  const std::string lm_head = "lm_head.weight";
  Parameters parameters;
  NamedTensors tensors(checkpoint);
  Loader load(tensors, parameters);

  // A tied model needs one table, and files store it under either name. If a file has both names,
  // two tables are used, as in transformers; if they are equal, this does no harm.
  const bool one_table = config.tied_embeddings && tensors.has(embedding) != tensors.has(lm_head);
  parameters.embedding = load.matrix(one_table && tensors.has(lm_head) ? lm_head : embedding,
                                     config.vocab_size, config.dim);
  for (std::size_t i = 0; i < config.n_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    LayerParameters& p = parameters.layers.emplace_back();
    p.attention = load_attention(load, config, layer);
    p.mlp = load_mlp(load, config, layer);
  }
  parameters.final_norm = load.vector("model.norm.weight", config.dim);
  parameters.lm_head.weight =
      one_table ? parameters.embedding : load.matrix(lm_head, config.vocab_size, config.dim);
  tensors.refuse_leftovers();
  return parameters;
}

}  // namespace stagecraft
