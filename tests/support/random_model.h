#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <random>

#include "checkpoint/safetensors_writer.h"
#include "tensor/matrix.h"
#include "tests/support/temporary_folder.h"

namespace stagecraft {

// A model of any size with random weights, for tests that need a larger one than the tiny models of
// tests/data. It is a Llama, with experts a Mixtral, with convolutions an LFM2, with a window a
// Mistral.
struct RandomModelSizes {
  std::size_t vocab_size = 515;
  std::size_t dim = 128;
  std::size_t ffn_dim = 333;
  std::size_t n_layers = 2;
  std::size_t n_heads = 4;
  std::size_t n_kv_heads = 2;
  std::size_t n_experts = 0, n_chosen = 2;  // experts of ffn_dim each; 0: none
  bool convolves = false;  // every other layer, the first one included, instead of attention
  std::size_t window = 0;  // how far back a token attends; 0: to the beginning
  float gain = 0.125f;     // weights are uniform between -gain and gain
  unsigned seed = 7;       // of the weights
};

inline void write_random_model(const std::filesystem::path& folder,
                               const RandomModelSizes& sizes = {}) {
  std::mt19937 engine(sizes.seed);
  std::vector<Matrix<float>> owned;
  std::vector<StoredTensor> tensors;
  const auto add = [&](const std::string& name, std::vector<std::size_t> shape) {
    const std::size_t rows = shape.size() == 1 ? 1 : shape[0];
    Matrix<float>& values = owned.emplace_back(rows, shape.back());
    for (std::size_t i = 0; i < rows * shape.back(); ++i) {
      values.data()[i] = sizes.gain * (static_cast<float>(engine()) * 0x1p-31f - 1.0f);
    }
    tensors.push_back({name, DType::F32, std::move(shape),
                       std::as_bytes(std::span(values.data(), rows * values.cols()))});
  };
  const std::size_t kv_dim = sizes.dim / sizes.n_heads * sizes.n_kv_heads;
  add("model.embed_tokens.weight", {sizes.vocab_size, sizes.dim});
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    const bool lfm2 = sizes.convolves;
    add(layer + (lfm2 ? "operator_norm" : "input_layernorm") + ".weight", {sizes.dim});
    if (lfm2 && i % 2 == 0) {
      add(layer + "conv.conv.weight", {sizes.dim, 1, 3});
      add(layer + "conv.in_proj.weight", {3 * sizes.dim, sizes.dim});
      add(layer + "conv.out_proj.weight", {sizes.dim, sizes.dim});
    } else {
      add(layer + "self_attn.q_proj.weight", {sizes.dim, sizes.dim});
      add(layer + "self_attn.k_proj.weight", {kv_dim, sizes.dim});
      add(layer + "self_attn.v_proj.weight", {kv_dim, sizes.dim});
      add(layer + "self_attn." + (lfm2 ? "out" : "o") + "_proj.weight", {sizes.dim, sizes.dim});
    }
    if (lfm2 && i % 2 == 1) {
      add(layer + "self_attn.q_layernorm.weight", {sizes.dim / sizes.n_heads});
      add(layer + "self_attn.k_layernorm.weight", {sizes.dim / sizes.n_heads});
    }
    add(layer + (lfm2 ? "ffn_norm" : "post_attention_layernorm") + ".weight", {sizes.dim});
    const auto block = [&](const std::string& at, const char* gate, const char* up,
                           const char* down) {
      add(at + gate + ".weight", {sizes.ffn_dim, sizes.dim});
      add(at + up + ".weight", {sizes.ffn_dim, sizes.dim});
      add(at + down + ".weight", {sizes.dim, sizes.ffn_dim});
    };
    if (lfm2) {
      block(layer + "feed_forward.", "w1", "w3", "w2");
      continue;
    }
    if (sizes.n_experts == 0) {
      block(layer + "mlp.", "gate_proj", "up_proj", "down_proj");
      continue;
    }
    add(layer + "block_sparse_moe.gate.weight", {sizes.n_experts, sizes.dim});
    for (std::size_t e = 0; e < sizes.n_experts; ++e) {
      block(fmt::format("{}block_sparse_moe.experts.{}.", layer, e), "w1", "w3", "w2");
    }
  }
  add(sizes.convolves ? "model.embedding_norm.weight" : "model.norm.weight", {sizes.dim});
  add("lm_head.weight", {sizes.vocab_size, sizes.dim});
  write_safetensors(folder / "model.safetensors", tensors, {});
  std::string attends, more;
  for (std::size_t i = 1; i < sizes.n_layers; i += 2) {
    attends += fmt::format("{}{}", i == 1 ? "" : ", ", i);
  }
  if (sizes.convolves) {
    more = fmt::format(R"(, "full_attn_idxs": [{}], "block_auto_adjust_ff_dim": false,
                         "norm_eps": 1e-5, "tie_word_embeddings": false)",
                       attends);
  } else if (sizes.n_experts != 0) {
    more = fmt::format(R"(, "num_local_experts": {}, "num_experts_per_tok": {})", sizes.n_experts,
                       sizes.n_chosen);
  }
  if (sizes.window != 0) more += fmt::format(R"(, "sliding_window": {})", sizes.window);
  const char* const type = sizes.convolves        ? "lfm2"
                           : sizes.n_experts != 0 ? "mixtral"
                           : sizes.window != 0    ? "mistral"
                                                  : "llama";
  write_file(folder / "config.json",
             fmt::format(R"({{"model_type": "{}", "vocab_size": {}, "hidden_size": {},
                         "intermediate_size": {}, "num_hidden_layers": {},
                         "num_attention_heads": {}, "num_key_value_heads": {},
                         "max_position_embeddings": 256, "rms_norm_eps": 1e-5{}}})",
                         type, sizes.vocab_size, sizes.dim, sizes.ffn_dim, sizes.n_layers,
                         sizes.n_heads, sizes.n_kv_heads, more));
}

}  // namespace stagecraft
