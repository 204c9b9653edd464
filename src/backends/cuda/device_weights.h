#pragma once

#include <map>
#include <vector>

#include "backends/cuda/device_memory.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"
#include "operators/cuda/operators.h"

namespace stagecraft::cuda {

// Models with more bytes of weights than this use tensor cores. It is kLargeModelBytes; only tests
// change it.
std::size_t& tensor_core_bytes();

// The weights of a plan in the GPU's memory, by WeightId. Vectors are f32. Matrices keep the format
// of the file if there is a WeightType for it. Q5_0 and IQ4_NL are stored as Q8_0, MXFP4 as bf16
// and IQ4_XS as f32, all without rounding. Other formats are stored as bf16. Weights that no step
// reads are not loaded.
class DeviceWeights {
 public:
  // Throws Error if find_weights does, or if the GPU has too little memory.
  DeviceWeights(const Plan& plan, const Checkpoint& checkpoint);

  // Whether activations are rounded for tensor cores, because the model is large.
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
  // One matrix per head, in the GPU's memory.
  const DeviceMatrix* heads(const HeadsLinearStep& step) const { return heads_.at(&step); }

 private:
  void add_matrix(const Weight& weight, const StoredTensor& stored, DeviceMatrix& matrix);
  template <class T>
  T* keep(std::span<const T> values);

  const bool rounds_rows_;
  std::vector<DeviceMatrix> matrices_;
  std::vector<const float*> vectors_;
  std::map<const ExpertsStep*, Experts> experts_;  // keys: the steps of the plan
  std::map<const HeadsLinearStep*, const DeviceMatrix*> heads_;
  std::vector<DeviceMemory> memory_;
};

}  // namespace stagecraft::cuda
