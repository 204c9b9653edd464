#include "backends/engine.h"

#include <new>
#include <vector>

#include <fmt/ranges.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/cuda_bytes.h"
#include "backends/split/split_backend.h"
#include "backends/textbook/textbook_backend.h"
#include "base/error.h"
#include "base/processors.h"
#include "model/plan_split.h"

namespace stagecraft {
namespace {

bool is_textbook(BackendKind kind) {
  return kind == BackendKind::Walker || kind == BackendKind::Textbook;
}

// Fills in the defaults.
EngineOptions complete(EngineOptions options, const Checkpoint& checkpoint) {
  if (options.n_threads == 0) options.n_threads = usable_cores();
  if (is_textbook(options.backend) && options.kv_type.value_or(KvType::F32) != KvType::F32) {
    throw Error("kv_type: expected f32 (the only type of the layers of the course), found {}",
                name_of(*options.kv_type));
  }
  if (options.gpu_layers && options.backend != BackendKind::Cuda) {
    throw Error("GPU layers: expected the backend for CUDA, found another backend");
  }
  if (!options.kv_type && is_textbook(options.backend)) options.kv_type = KvType::F32;
  if (!options.kv_type && options.backend == BackendKind::Cuda) options.kv_type = KvType::F16;
  if (!options.kv_type) options.kv_type = default_kv_type(checkpoint);
  return options;
}

// Throws Error unless the last n layers can be on a GPU by themselves.
void check_gpu_layers(const Plan& plan, std::size_t n) {
  const auto is_possible = [&](std::size_t count) {
    return count == 0 || count == plan.n_layers || can_split(plan, count);
  };
  if (n > plan.n_layers) {
    throw Error("GPU layers: expected at most {} (the model's layers), found {}", plan.n_layers, n);
  }
  if (is_possible(n)) return;
  std::vector<std::size_t> possible;
  for (std::size_t count = 0; count <= plan.n_layers; ++count) {
    if (is_possible(count)) possible.push_back(count);
  }
  throw Error(
      "GPU layers: expected one of {}, found {}: at another layer, the two parts of the model "
      "would share more than the residual stream",
      fmt::join(possible, ", "), n);
}

// One backend per part of the model, or one for the whole model.
std::unique_ptr<Backend> make_gpu_layers(const Plan& plan, const Checkpoint& checkpoint,
                                         const EngineOptions& options) {
  const std::size_t n = options.gpu_layers.value_or(plan.n_layers);
  check_gpu_layers(plan, n);
  const auto on_cpu = [&](const Plan& part) {
    return make_cpu_backend(part, checkpoint, *options.kv_type, options.n_threads);
  };
  const auto on_gpu = [&](const Plan& part) {
    return make_cuda_backend(part, checkpoint, *options.kv_type);
  };
  if (n == 0) return on_cpu(plan);
  return n == plan.n_layers ? on_gpu(plan) : make_split_backend(plan, n, on_cpu, on_gpu);
}

// Bytes in the host's memory. The GPU of the emulator uses the host's memory, too.
SequenceBytes gpu_layers_bytes(const Plan& plan, const EngineOptions& options,
                               std::size_t context) {
  const std::size_t n = options.gpu_layers.value_or(plan.n_layers);
  const KvType type = options.kv_type.value();
  const bool is_emulated = cuda_backend_name() == "cuda-emulator";
  const auto on_gpu = [&](const Plan& part) {
    return is_emulated ? cuda_bytes(part, type, context) : SequenceBytes{0.0, 0.0};
  };
  if (n == 0) return cpu_bytes(plan, type, context);
  if (n == plan.n_layers) return on_gpu(plan);
  const SplitPlan parts = split_plan(plan, n);
  const SequenceBytes front = cpu_bytes(parts.front, type, context), back = on_gpu(parts.back);
  return {front.cache + back.cache, front.workspace + back.workspace};
}

std::unique_ptr<Backend> make_backend(const ModelDescription& description,
                                      const Checkpoint& checkpoint, const EngineOptions& options) {
  switch (options.backend) {
    case BackendKind::Walker:
      return make_walking_backend(description.plan, checkpoint, options.n_threads);
    case BackendKind::Textbook:
      return make_textbook_backend(description, checkpoint, options.n_threads);
    case BackendKind::Cpu:
      return make_cpu_backend(description.plan, checkpoint, *options.kv_type, options.n_threads);
    case BackendKind::Cuda:
      break;
  }
  return make_gpu_layers(description.plan, checkpoint, options);
}

}  // namespace

Engine Engine::open(const ModelSource& model, const EngineOptions& options) {
  Checkpoint checkpoint = Checkpoint::open(model);  // first: if both are broken, this is reported
  auto parts = std::make_unique<const Parts>(Parts{describe_model(model), std::move(checkpoint)});
  const EngineOptions all = complete(options, parts->checkpoint);
  return {std::move(parts), all};
}

Engine::Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options)
    : parts_(std::move(parts)), options_(options) {
  const auto& [description, checkpoint] = *parts_;
  try {
    backend_ = make_backend(description, checkpoint, options_);
  } catch (const std::bad_alloc&) {
    throw Error("{}: the weights{} need more memory than is available", checkpoint.name(),
                is_textbook(options.backend) ? ", as f32," : "");
  }
}

void Engine::check_context(std::size_t context) const {
  const std::size_t limit = context_limit(plan(), context);
  if (context == limit) return;
  throw Error("context: expected at most {} tokens (the model's positions), found {}", limit,
              context);
}

std::unique_ptr<Sequence> Engine::make_sequence(std::size_t context, std::size_t max_rows) {
  check_context(context);
  return backend_->make_sequence(context, max_rows);
}

std::vector<std::unique_ptr<Sequence>> Engine::make_sequences(std::size_t n, std::size_t n_more,
                                                              std::size_t context,
                                                              std::size_t max_rows) {
  check_context(context);
  return backend_->make_sequences(n, n_more, context, max_rows);
}

StepResults& Engine::step_results() {
  if (StepResults* results = backend_->step_results()) return *results;
  throw Error("probe: expected the textbook backend, found one that fuses steps");
}

SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context) {
  if (is_textbook(options.backend)) return textbook_bytes(plan, context);
  if (options.backend == BackendKind::Cuda) return gpu_layers_bytes(plan, options, context);
  return cpu_bytes(plan, options.kv_type.value(), context);
}

}  // namespace stagecraft
