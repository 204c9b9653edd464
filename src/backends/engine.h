#pragma once

#include <memory>
#include <optional>

#include "backends/backend.h"
#include "checkpoint/checkpoint.h"
#include "model/description.h"

namespace stagecraft {

// What computes a pass. Walker: one operator of the course per step of the plan, in f32. Textbook:
// the same, but the layers of the course where they can run the model. Cpu: packed weights, fused
// steps and the kernels of this processor. Cuda: a GPU, or its emulator, in programs that have it
// (cuda/cuda_backend.h).
enum class BackendKind { Walker, Textbook, Cpu, Cuda };

// How the Cpu and Cuda backends keep keys and values: as they are, rounded to halves, or to bytes
// by blocks of 32, which takes half of the memory, or less than a third, and as much less to read.
enum class KvType { F32, F16, Q8_0 };

struct EngineOptions {
  BackendKind backend = BackendKind::Cpu;
  std::size_t n_threads = 0;  // 0: one per core
  KvType kv_type = KvType::F32;
  // Of Cuda: only the last so many layers and the head are on the GPU, the others on the CPU. None:
  // all layers. 0: nothing is on the GPU, not even the head.
  std::optional<std::size_t> gpu_layers = {};
};

// A model, ready to run: its description, its weights on a backend, and the threads that all
// sequences share.
class Engine {
 public:
  // `model`: a folder with config.json and the weights, or a model file. Throws Error.
  static Engine open(const ModelSource& model, const EngineOptions& options = {});

  const Plan& plan() const { return parts_->description.plan; }
  // Of Llama's family, for the layers of the course; of no other.
  const std::optional<Config>& config() const { return parts_->description.config; }
  const Checkpoint& checkpoint() const { return parts_->checkpoint; }
  const EngineOptions& options() const { return options_; }

  // See Backend. The engine must outlive its sequences.
  // Throws Error if the model has learned positions and fewer of them than `context`.
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
  void set_probe(Probe probe) { backend_->set_probe(std::move(probe)); }
  void score(MatrixView<const float> x, MatrixView<float> logits) { backend_->score(x, logits); }

 private:
  void check_context(std::size_t context) const;

  struct Parts {  // at one place in memory, because the backend looks at them
    ModelDescription description;
    Checkpoint checkpoint;
  };
  Engine(std::unique_ptr<const Parts> parts, const EngineOptions& options);

  std::unique_ptr<const Parts> parts_;
  EngineOptions options_;
  std::unique_ptr<Backend> backend_;
};

// The memory in bytes that a sequence comes to use. Pages that are never reached cost nothing.
struct SequenceBytes {
  double cache;      // keys and values
  double workspace;  // of a pass; sequences of one engine share it
};
SequenceBytes sequence_bytes(const Plan& plan, const EngineOptions& options, std::size_t context);

}  // namespace stagecraft
