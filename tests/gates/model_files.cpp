#include "tests/gates/model_files.h"

#include <fmt/format.h>

#include <cstring>

#include "checkpoint/safetensors_writer.h"
#include "course/judge/kept_requests.h"
#include "operators/dequantize.h"
#include "tests/gates/half_format.h"

namespace stagecraft::stages {
namespace {

class WeightList {
 public:
  void add(const std::string& name, const std::string& place, std::vector<std::size_t> shape) {
    weights.push_back({name, place, std::move(shape)});
  }
  void linear(const std::string& name, const std::string& place, std::size_t outputs,
              std::size_t inputs, bool bias) {
    add(name + ".weight", place + ".weight", {outputs, inputs});
    if (bias) add(name + ".bias", place + ".bias", {outputs});
  }

  std::vector<Weight> weights;
};

// A random bit pattern of a half-precision format, neither infinite nor NaN.
std::uint16_t random_word(const HalfFormat& format, Inputs& inputs) {
  for (;;) {
    const std::size_t word = inputs.size(0, 0xffff);
    if (format.is_finite(static_cast<unsigned>(word))) return static_cast<std::uint16_t>(word);
  }
}

}  // namespace

std::vector<Weight> weights_of(const Config& c) {
  WeightList list;
  list.add(kEmbedding, "embedding", {c.vocab_size, c.dim});
  for (std::size_t i = 0; i < c.n_layers; ++i) {
    const std::string name = fmt::format("model.layers.{}.", i);
    const std::string attention = fmt::format("layers[{}].attention.", i);
    const std::string mlp = fmt::format("layers[{}].mlp.", i);
    list.add(name + "input_layernorm.weight", attention + "norm", {c.dim});
    list.linear(name + "self_attn.q_proj", attention + "q", c.q_dim(), c.dim, c.qkv_bias);
    list.linear(name + "self_attn.k_proj", attention + "k", c.kv_dim(), c.dim, c.qkv_bias);
    list.linear(name + "self_attn.v_proj", attention + "v", c.kv_dim(), c.dim, c.qkv_bias);
    if (c.qk_norm) {
      list.add(name + "self_attn.q_norm.weight", attention + "q_norm", {c.head_dim});
      list.add(name + "self_attn.k_norm.weight", attention + "k_norm", {c.head_dim});
    }
    list.linear(name + "self_attn.o_proj", attention + "o", c.dim, c.q_dim(), c.o_bias);
    list.add(name + "post_attention_layernorm.weight", mlp + "norm", {c.dim});
    list.linear(name + "mlp.gate_proj", mlp + "gate", c.ffn_dim, c.dim, c.mlp_bias);
    list.linear(name + "mlp.up_proj", mlp + "up", c.ffn_dim, c.dim, c.mlp_bias);
    list.linear(name + "mlp.down_proj", mlp + "down", c.dim, c.ffn_dim, c.mlp_bias);
  }
  list.add("model.norm.weight", "final_norm", {c.dim});
  list.add(kHead, "lm_head.weight", {c.vocab_size, c.dim});
  return list.weights;
}

std::vector<std::string> every_name(const Config& config) {
  Config full = config;
  full.qkv_bias = full.o_bias = full.mlp_bias = full.qk_norm = true;
  ++full.n_layers;
  std::vector<std::string> names;
  for (const Weight& weight : weights_of(full)) names.push_back(weight.name);
  return names;
}

Config fresh_config(Inputs& inputs) {
  Config c;
  c.n_layers = 3;
  c.n_kv_heads = 2;
  c.n_heads = c.n_kv_heads * inputs.size(2, 3);
  c.head_dim = 2 * inputs.size(3, 5);  // q_dim from 24 to 60
  c.dim = inputs.odd_size(61, 70);     // odd, so that F32 after a 16-bit tensor is not aligned
  c.ffn_dim = inputs.size(71, 80);
  c.vocab_size = inputs.odd_size(81, 90);
  return c;
}

std::vector<FileTensor> tensors_of(const Config& config, Inputs& inputs) {
  std::vector<FileTensor> tensors;
  for (const Weight& weight : weights_of(config)) {
    tensors.push_back({weight.name, weight.shape, inputs.tensor(weight.shape).values});
  }
  return tensors;
}

std::filesystem::path write_model(const std::vector<FileTensor>& tensors,
                                  const FileOptions& options) {
  static int count = 0;
  const std::filesystem::path folder = folder_for_files(fmt::format("model {}", ++count));
  Inputs inputs;
  std::vector<std::vector<std::uint16_t>> halves(tensors.size());
  std::vector<StoredTensor> stored;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const FileTensor& tensor = tensors[i];
    const DType dtype = options.dtypes[i % options.dtypes.size()];
    auto bytes = std::as_bytes(std::span(tensor.values));
    if (dtype != DType::F32) {
      for (std::size_t n = 0; n < tensor.values.size(); ++n) {
        halves[i].push_back(random_word(dtype == DType::F16 ? kF16 : kBf16, inputs));
      }
      bytes = std::as_bytes(std::span(halves[i]));
    }
    stored.push_back({tensor.name, dtype, tensor.shape, bytes});
  }
  write_safetensors(folder / "model.safetensors", stored, {});
  return folder;
}

Expected values_of(const StoredTensor& tensor) {
  Expected expected{tensor.shape, {}, {}};
  if (is_quantized(tensor.dtype)) {
    std::vector<float> values(element_count(tensor));
    dequantize(tensor.dtype, tensor.bytes, values);
    expected.values.assign(values.begin(), values.end());
    expected.allowed.assign(values.size(), 0.0);
    return expected;
  }
  const std::size_t n = tensor.bytes.size() / dtype_block(tensor.dtype).bytes;
  for (std::size_t i = 0; i < n; ++i) {
    const std::byte* at = tensor.bytes.data() + i * dtype_block(tensor.dtype).bytes;
    float value = 0.0f;
    std::uint16_t word = 0;
    if (tensor.dtype == DType::F32) {
      std::memcpy(&value, at, sizeof value);
      expected.values.push_back(static_cast<double>(value));
    } else {
      std::memcpy(&word, at, sizeof word);
      expected.values.push_back((tensor.dtype == DType::F16 ? kF16 : kBf16).value(word));
    }
  }
  expected.allowed.assign(n, 0.0);
  return expected;
}

}  // namespace stagecraft::stages
