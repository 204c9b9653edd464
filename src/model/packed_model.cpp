#include "model/packed_model.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "model/named_tensors.h"

namespace stagecraft {
namespace {

// Rounding the activations too costs a part in a few hundred of each, which the models that are
// large enough for it to be worth while do not mind; small ones tell the same story on every
// processor.
bool is_large(const Checkpoint& checkpoint) {
  std::size_t bytes = 0;
  for (const StoredTensor* tensor : checkpoint.tensors()) bytes += tensor->bytes.size();
  return bytes > std::size_t{64} << 20;
}

// A matrix that has its place in memory and is to be packed into it.
struct Job {
  const StoredTensor* stored;
  PanelMatrix* packed;
  std::size_t offset;  // of its first panel
};

// Takes tensors by name and plans where their panels will lie.
class Planner {
 public:
  // round: bf16 weights are multiplied with rounded activations, where that is faster.
  Planner(NamedTensors& tensors, bool round) : tensors_(tensors), round_(round) {}

  const StoredTensor& find(const std::string& name, const std::vector<std::size_t>& shape) {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr || tensor->shape != shape) {
      throw Error("{}: tensor '{}': expected {}, found {}", tensors_.where(), name,
                  shape_text(shape), tensor == nullptr ? "none" : shape_text(tensor->shape));
    }
    if (tensor->dtype != DType::F32 && tensor->dtype != DType::F16 &&
        tensor->dtype != DType::BF16 && !is_quantized(tensor->dtype)) {
      throw Error("{}: tensor '{}': expected F32, F16 or BF16, found {}", tensors_.where(), name,
                  dtype_name(tensor->dtype));
    }
    return *tensor;
  }

  std::vector<float> vector(const std::string& name, std::size_t size) {
    StoredTensor row = find(name, {size});
    row.shape = {1, size};
    std::vector<float> values(size);
    read_row(row, 0, values);
    return values;
  }

  // A linear map and its place after those before.
  void linear(const std::string& name, std::size_t outputs, std::size_t inputs, bool bias,
              PackedLinear& linear) {
    take(name, outputs, inputs, bias, linear);
    place(1);
  }
  // Two of the same shape, whose panels lie in turn.
  void pair(const std::string& first_name, const std::string& second_name, std::size_t outputs,
            std::size_t inputs, bool bias, PackedLinear& first, PackedLinear& second) {
    take(first_name, outputs, inputs, bias, first);
    take(second_name, outputs, inputs, bias, second);
    place(2);
  }

  std::size_t bytes() const { return bytes_; }
  const std::vector<Job>& jobs() const { return jobs_; }

 private:
  void take(const std::string& name, std::size_t outputs, std::size_t inputs, bool bias,
            PackedLinear& linear) {
    const StoredTensor& stored = find(name + ".weight", {outputs, inputs});
    if (bias) linear.bias = vector(name + ".bias", outputs);
    linear.weight = {form_of(stored), outputs, inputs, nullptr, 0};
    jobs_.push_back({&stored, &linear.weight, 0});
  }

  Form form_of(const StoredTensor& stored) const {
    const Form form = panel_form(stored);
    return form == Form::BF16 && round_ ? Form::RoundedBF16 : form;
  }

  // Gives the last `count` matrices that were taken their place: panel by panel in turn.
  void place(std::size_t count) {
    const auto last = std::span(jobs_).last(count);
    std::size_t stride = 0;
    for (Job& job : last) {
      job.offset = bytes_ + stride;
      stride += panel_bytes(job.packed->form, job.packed->inputs);
    }
    for (Job& job : last) job.packed->stride = stride;
    bytes_ += stride * last.front().packed->panel_count();
  }

  NamedTensors& tensors_;
  bool round_;
  std::vector<Job> jobs_;
  std::size_t bytes_ = 0;
};

void plan_layer(Planner& plan, const Config& config, const std::string& name, PackedLayer& layer) {
  const std::string attn = name + "self_attn.";
  const std::string mlp = name + "mlp.";
  layer.attention_norm = plan.vector(name + "input_layernorm.weight", config.dim);
  plan.linear(attn + "q_proj", config.q_dim(), config.dim, config.qkv_bias, layer.q);
  plan.linear(attn + "k_proj", config.kv_dim(), config.dim, config.qkv_bias, layer.k);
  plan.linear(attn + "v_proj", config.kv_dim(), config.dim, config.qkv_bias, layer.v);
  if (config.qk_norm) {
    layer.q_norm = plan.vector(attn + "q_norm.weight", config.head_dim);
    layer.k_norm = plan.vector(attn + "k_norm.weight", config.head_dim);
  }
  plan.linear(attn + "o_proj", config.dim, config.q_dim(), config.o_bias, layer.o);
  layer.mlp_norm = plan.vector(name + "post_attention_layernorm.weight", config.dim);
  plan.pair(mlp + "gate_proj", mlp + "up_proj", config.ffn_dim, config.dim, config.mlp_bias,
            layer.gate, layer.up);
  plan.linear(mlp + "down_proj", config.dim, config.ffn_dim, config.mlp_bias, layer.down);
}

// Takes all tensors and gives each matrix its place, which the memory will be made for. `model`
// must stay where it is until it is packed: the plan points into it.
void plan_model(Planner& plan, NamedTensors& tensors, const Config& config, PackedModel& model) {
  const std::string embedding = "model.embed_tokens";
  const std::string lm_head = "lm_head";
  // One table or two, as load_parameters has it.
  const bool has_head = tensors.has(lm_head + ".weight");
  const bool one_table = config.tied_embeddings && tensors.has(embedding + ".weight") != has_head;
  const std::string& table = one_table && has_head ? lm_head : embedding;
  model.embedding = &plan.find(table + ".weight", {config.vocab_size, config.dim});
  model.layers.resize(config.n_layers);
  for (std::size_t i = 0; i < config.n_layers; ++i) {
    plan_layer(plan, config, "model.layers." + std::to_string(i) + ".", model.layers[i]);
  }
  model.final_norm = plan.vector("model.norm.weight", config.dim);
  plan.linear(one_table ? table : lm_head, config.vocab_size, config.dim, false, model.lm_head);
  tensors.refuse_leftovers();
}

// Packs all matrices, a few panels at a time, whichever thread is free. Every so often the file's
// pages are let go of, so that the model is not in memory twice.
void pack(const std::vector<Job>& jobs, const Checkpoint& checkpoint, std::byte* memory,
          ThreadPool& threads) {
  constexpr std::size_t kPanels = 4;
  constexpr std::size_t kReleaseEvery = std::size_t{4} << 20;
  for (const Job& job : jobs) job.packed->panels = memory + job.offset;
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;  // bytes since the last release
  threads.run([&](std::size_t) {
    std::size_t first = 0;  // of this job's pieces, among those of all
    std::size_t piece = next++;
    for (const Job& job : jobs) {
      const std::size_t panels = job.packed->panel_count();
      const std::size_t pieces = (panels + kPanels - 1) / kPanels;
      const std::size_t bytes = panel_bytes(job.packed->form, job.packed->inputs);
      for (; piece < first + pieces; piece = next++) {
        const std::size_t begin = (piece - first) * kPanels;
        for (std::size_t i = begin; i < std::min(panels, begin + kPanels); ++i) {
          pack_panel(*job.stored, i * kPanelOutputs,
                     {memory + job.offset + i * job.packed->stride, bytes});
          const std::size_t now = done += bytes;
          if (now >= kReleaseEvery) {
            done = 0;
            checkpoint.release_pages();
          }
        }
      }
      first += pieces;
    }
  });
  checkpoint.release_pages();
}

}  // namespace

PackedModel pack_model(const Config& config, const Checkpoint& checkpoint, ThreadPool& threads) {
  PackedModel model;
  NamedTensors tensors(checkpoint);
  Planner plan(tensors, is_large(checkpoint));
  plan_model(plan, tensors, config, model);
  model.memory = LargeMemory(plan.bytes());
  pack(plan.jobs(), checkpoint, model.memory.data(), threads);
  return model;
}

std::size_t packed_bytes(const Config& config, const Checkpoint& checkpoint) {
  PackedModel model;
  NamedTensors tensors(checkpoint);
  Planner plan(tensors, is_large(checkpoint));
  plan_model(plan, tensors, config, model);
  return plan.bytes();
}

}  // namespace stagecraft
