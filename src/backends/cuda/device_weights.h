#pragma once

#include <map>
#include <vector>

#include "backends/cuda/device_memory.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/cuda/operators.h"

namespace stagecraft::cuda {

// The weights of a plan in the GPU's memory, by WeightId: matrices in the format of the file where
// there is a WeightType for it, vectors as f32. Other formats are kept as on the CPU: Q5_0 as Q8_0,
// which is exact, and those with more than one scale per block as bf16.
// Models with more bytes of weights than this, 64 MiB, use tensor cores: rounding activations costs
// a small model more than it gains in speed, as on the CPU. Tests change it.
std::size_t& tensor_core_bytes();

class DeviceWeights {
 public:
  // Throws Error as find_weights does, or if the GPU has too little memory.
  DeviceWeights(const Plan& plan, const Checkpoint& checkpoint);

  // The model is large: activations are rounded for tensor cores.
  bool rounds_rows() const { return rounds_rows_; }
  const DeviceMatrix& matrix(WeightId id) const { return matrices_[static_cast<std::size_t>(id)]; }
  const float* vector(WeightId id) const {
    return id == kNone ? nullptr : vectors_[static_cast<std::size_t>(id)];
  }
  // The experts' weights as tables that kernels can index.
  struct Experts {
    DeviceExperts gate, up, down;
  };
  const Experts& experts(const ExpertsStep& step) const { return experts_.at(&step); }
  // A matrix per head.
  const DeviceMatrix* heads(const HeadsLinearStep& step) const { return heads_.at(&step); }

 private:
  void add_matrix(const Weight& weight, const StoredTensor& stored, DeviceMatrix& matrix);
  template <class T>
  T* keep(std::span<const T> values);

  const bool rounds_rows_;
  std::vector<DeviceMatrix> matrices_;
  std::vector<const float*> vectors_;
  std::map<const ExpertsStep*, Experts> experts_;  // by step of the plan
  std::map<const HeadsLinearStep*, const DeviceMatrix*> heads_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace stagecraft::cuda
