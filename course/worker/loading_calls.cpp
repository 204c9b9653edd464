#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/model_source.h"
#include "course/worker/calls.h"
#include "course/worker/config_numbers.h"
#include "model/parameters.h"

namespace stagecraft::stages {
namespace {

void call_parse_config(Arguments& args) {
  const Config config = parse_config(args.text("config"), "config.json");
  visit_numbers(config, [&](const std::string& member, const char*, auto value) {
    args.record(member, std::vector<float>{static_cast<float>(value)});
  });
  args.record("windows", std::vector<float>(config.windows.begin(), config.windows.end()));
  std::vector<float> ends(config.eos_ids.begin(), config.eos_ids.end());
  std::ranges::sort(ends);  // their order means nothing
  args.record("eos_ids", ends);
}

// The result of the student's load_parameters, with the names of the tensors in the file.
class Shown {
 public:
  Shown(Arguments& args, const Checkpoint& checkpoint) : args_(args), checkpoint_(checkpoint) {}

  void show(const std::string& name, MatrixView<const float> matrix) {
    if (matrix.empty()) return;
    args_.record(name, matrix);
    show_place(name, matrix.data());
  }
  void show(const std::string& name, std::span<const float> vector) {
    if (vector.empty()) return;
    args_.record(name, vector);
    show_place(name, vector.data());
  }
  void show(const std::string& name, const Linear& linear) {
    show(name + ".weight", linear.weight);
    show(name + ".bias", linear.bias);
  }

 private:
  void show_place(const std::string& name, const float* data) {
    const StoredTensor* tensor = checkpoint_.find(name);
    const bool in_file =
        tensor != nullptr && static_cast<const void*>(data) == tensor->bytes.data();
    args_.record(name + " lies in the file", std::vector<int>{in_file});
  }

  Arguments& args_;
  const Checkpoint& checkpoint_;
};

// Overwrites freed memory, so that a view that still points to it is wrong.
void spoil_free_memory() {
  std::vector<std::vector<unsigned char>> blocks;
  for (std::size_t size = 16; size <= 4096; size += 16) {
    for (int i = 0; i < 4; ++i) blocks.emplace_back(size, 0x5a);
  }
}

void call_load_parameters(Arguments& args) {
  Config config;
  visit_numbers(config, [&](const std::string& member, const char*, auto& value) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(args.scalar(member));
  });
  const Checkpoint checkpoint = Checkpoint::open(args.text("model"));
  const Parameters parameters = load_parameters(config, checkpoint);
  spoil_free_memory();

  Shown shown(args, checkpoint);
  shown.show("model.embed_tokens.weight", parameters.embedding);
  std::size_t n = 0;
  for (const LayerParameters& layer : parameters.layers) {
    const std::string name = "model.layers." + std::to_string(n++) + ".";
    shown.show(name + "input_layernorm.weight", layer.attention.norm);
    shown.show(name + "self_attn.q_proj", layer.attention.q);
    shown.show(name + "self_attn.k_proj", layer.attention.k);
    shown.show(name + "self_attn.v_proj", layer.attention.v);
    shown.show(name + "self_attn.q_norm.weight", layer.attention.q_norm);
    shown.show(name + "self_attn.k_norm.weight", layer.attention.k_norm);
    shown.show(name + "self_attn.o_proj", layer.attention.o);
    shown.show(name + "post_attention_layernorm.weight", layer.mlp.norm);
    shown.show(name + "mlp.gate_proj", layer.mlp.gate);
    shown.show(name + "mlp.up_proj", layer.mlp.up);
    shown.show(name + "mlp.down_proj", layer.mlp.down);
  }
  shown.show("model.norm.weight", parameters.final_norm);
  shown.show("lm_head", parameters.lm_head);
  args.record("layers", std::vector<int>{static_cast<int>(parameters.layers.size())});
  args.record("lm_head is the embedding",
              std::vector<int>{parameters.lm_head.weight.data() == parameters.embedding.data()});
}

const Callable kLoadingCalls{{"parse_config", call_parse_config},
                             {"load_parameters", call_load_parameters}};

}  // namespace

}  // namespace stagecraft::stages
