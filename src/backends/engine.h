#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/engine_options.h"
#include "checkpoint/checkpoint.h"
#include "model/description.h"

namespace stagecraft {

// A model, ready to run: its description, its weights on a backend, and the threads that all
// sequences share.
class Engine {
 public:
  // `model`: a folder with config.json and the weights, or a model file. Throws Error if a file is
  // missing or broken, if the backend cannot run the model or an option, or if memory or a GPU is
  // missing.
  static Engine open(const ModelSource& model, const EngineOptions& options = {});

  const Plan& plan() const { return parts_->description.plan; }
  const Checkpoint& checkpoint() const { return parts_->checkpoint; }
  // The options with their defaults filled in; only gpu_layers may still be empty.
  const EngineOptions& options() const { return options_; }

  // See Backend. The engine must outlive its sequences. Throws Error if the model has learned
  // positions, but fewer than `context`.
  std::unique_ptr<Sequence> make_sequence(std::size_t context, std::size_t max_rows = 0);
  std::vector<std::unique_ptr<Sequence>> make_sequences(std::size_t n, std::size_t n_more,
                                                        std::size_t context, std::size_t max_rows);
  void forward(std::span<const Input> inputs, MatrixView<float> logits) {
    backend_->forward(inputs, logits);
  }
  void forward_greedy(std::span<const Input> inputs, MatrixView<float> logits,
                      std::span<TokenId> likeliest) {
    backend_->forward_greedy(inputs, logits, likeliest);
  }
  std::size_t max_rows() const { return backend_->max_rows(); }
  std::size_t n_threads() const { return backend_->n_threads(); }
  void use_threads(std::size_t n) { backend_->use_threads(n); }
  // Throws Error if the backend fuses steps.
  StepResults& step_results();

 private:
  void check_context(std::size_t context) const;

  struct Parts {  // at a fixed address, because the backend refers to them
    ModelDescription description;
    Checkpoint checkpoint;
  };
  Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options);

  std::unique_ptr<const Parts> parts_;
  EngineOptions options_;
  std::unique_ptr<Backend> backend_;
};

// Passes the intermediate results of an engine to `probe` as long as it exists; see StepResults.
class ProbeScope {
 public:
  ProbeScope(Engine& engine, Probe probe) : results_(engine.step_results()) {
    results_.set_probe(std::move(probe));
  }
  ~ProbeScope() { results_.set_probe({}); }
  ProbeScope(const ProbeScope&) = delete;
  ProbeScope& operator=(const ProbeScope&) = delete;

 private:
  StepResults& results_;
};

// The memory of a sequence of an engine with these options: of the host, not of a GPU. For Cpu and
// Cuda, `options` must have a kv_type.
SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context);

}  // namespace stagecraft
