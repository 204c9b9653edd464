#include "backends/engine.h"

#include <new>

#include "backends/cpu/cpu_backend.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/textbook/textbook_backend.h"
#include "base/error.h"
#include "base/processors.h"

namespace stagecraft {
namespace {

EngineOptions with_threads(EngineOptions options) {
  if (options.n_threads == 0) options.n_threads = usable_cores();
  return options;
}

bool is_textbook(BackendKind kind) {
  return kind == BackendKind::Walker || kind == BackendKind::Textbook;
}

}  // namespace

Engine Engine::open(const ModelSource& model, const EngineOptions& options) {
  Checkpoint checkpoint = Checkpoint::open(model);  // first: where both are broken, this is told
  auto parts = std::make_unique<const Parts>(Parts{describe_model(model), std::move(checkpoint)});
  return {std::move(parts), with_threads(options)};
}

Engine::Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options) try
    : parts_(std::move(parts)), options_(options) {
  const auto& [description, checkpoint] = *parts_;
  switch (options.backend) {
    case BackendKind::Walker:
      backend_ = make_walking_backend(description.plan, checkpoint, options.n_threads);
      break;
    case BackendKind::Textbook:
      backend_ = make_textbook_backend(description, checkpoint, options.n_threads);
      break;
    case BackendKind::Cpu:
      backend_ = make_cpu_backend(description.plan, checkpoint, options);
      break;
    case BackendKind::Cuda:
      backend_ = make_cuda_backend(description.plan, checkpoint, options);
      break;
  }
} catch (const std::bad_alloc&) {
  throw Error("{}: its weights take more memory{} than this program may have",
              parts_->checkpoint.name(), is_textbook(options.backend) ? " as f32" : "");
}

void Engine::check_context(std::size_t context) const {
  if (context <= context_limit(plan(), context)) return;
  throw Error("context: expected at most {} tokens (the model's positions), found {}",
              plan().max_positions, context);
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

SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context) {
  if (is_textbook(options.backend)) return textbook_bytes(plan, context);
  if (options.backend == BackendKind::Cuda) return cuda_bytes(plan, options.kv_type, context);
  return cpu_bytes(plan, options.kv_type, context);
}

}  // namespace stagecraft
