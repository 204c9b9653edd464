#include "model/parameters.h"

#include <cstring>
#include <set>

#include "base/error.h"
#include "operators/widen.h"

namespace stagecraft {
namespace {

// Hands out the tensors of a checkpoint as f32, each checked, and remembers which were taken.
class Loader {
 public:
  Loader(const Checkpoint& checkpoint, Parameters& parameters)
      : checkpoint_(checkpoint), parameters_(parameters) {}

  MatrixView<const float> matrix(const std::string& name, std::size_t rows, std::size_t cols) {
    return {f32(name, {rows, cols}), rows, cols};
  }
  std::span<const float> vector(const std::string& name, std::size_t size) {
    return {f32(name, {size}), size};
  }
  Linear linear(const std::string& name, std::size_t outputs, std::size_t inputs, bool bias) {
    Linear result;
    result.weight = matrix(name + ".weight", outputs, inputs);
    if (bias) result.bias = vector(name + ".bias", outputs);
    return result;
  }

  bool has(const std::string& name) const { return checkpoint_.find(name) != nullptr; }

  // A tensor nobody asked for is a model that the config does not describe: one more layer, a bias.
  void refuse_leftovers() const {
    for (const StoredTensor* tensor : checkpoint_.tensors()) {
      if (taken_.contains(tensor->name)) continue;
      if (tensor->name.ends_with(".rotary_emb.inv_freq")) continue;  // old files; computed here
      throw Error("{}: tensor '{}' {} is not part of the model that config.json describes",
                  checkpoint_.name(), printable(tensor->name), shape_text(tensor->shape));
    }
  }

 private:
  const float* f32(const std::string& name, const std::vector<std::size_t>& shape) {
    const StoredTensor* tensor = checkpoint_.find(name);
    if (tensor == nullptr) {
      throw Error("{}: tensor '{}': expected {}, found none", checkpoint_.name(), name,
                  shape_text(shape));
    }
    if (tensor->shape != shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", checkpoint_.name(), name,
                  shape_text(shape), shape_text(tensor->shape));
    }
    taken_.insert(name);
    const std::byte* bytes = tensor->bytes.data();
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes) % alignof(float) == 0;
    if (tensor->dtype == DType::F32 && aligned) return reinterpret_cast<const float*>(bytes);
    return widen(*tensor);
  }

  const float* widen(const StoredTensor& tensor) {
    const std::size_t n = tensor.bytes.size() / dtype_size(tensor.dtype);
    Matrix<float>& out = parameters_.widened.emplace_back(1, n);
    if (tensor.dtype == DType::F32) {
      std::memcpy(out.data(), tensor.bytes.data(), tensor.bytes.size());
      return out.data();
    }
    if (tensor.dtype != DType::F16 && tensor.dtype != DType::BF16) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", checkpoint_.name(),
                  tensor.name, dtype_name(tensor.dtype));
    }
    const auto widen_words = tensor.dtype == DType::F16 ? &widen_f16 : &widen_bf16;
    const auto* words = reinterpret_cast<const std::uint16_t*>(tensor.bytes.data());
    std::vector<std::uint16_t> copy;  // only for files that put a tensor at an odd byte
    if (reinterpret_cast<std::uintptr_t>(words) % alignof(std::uint16_t) != 0) {
      copy.resize(n);
      std::memcpy(copy.data(), tensor.bytes.data(), tensor.bytes.size());
      words = copy.data();
    }
    widen_words({words, n}, {out.data(), n});
    return out.data();
  }

  const Checkpoint& checkpoint_;
  Parameters& parameters_;
  std::set<std::string, std::less<>> taken_;
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
  Loader load(checkpoint, parameters);

  // A tied model needs one table, and files store it under either name. Where both are there they
  // are two, whatever config.json says: so transformers reads it, and equal ones do no harm.
  const bool one_table = config.tied_embeddings && load.has(embedding) != load.has(lm_head);
  parameters.embedding = load.matrix(one_table && load.has(lm_head) ? lm_head : embedding,
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
  load.refuse_leftovers();
  return parameters;
}

}  // namespace stagecraft
