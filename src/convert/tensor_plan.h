#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"

namespace stagecraft {

// One tensor that is to be written.
struct PlannedTensor {
  std::string name;  // Hugging Face's
  const StoredTensor* stored;
  DType dtype;
  bool exact = false;     // Weight::exact: it keeps its number format
  std::size_t pairs = 0;  // rows are to stand in RoPE pairs, for so many heads (rope_pairs.h)
};

// The tensors of a model, in the order of its plan, each as stored: all that the plan asks for and
// no other. A tied model has one table, called the embedding, unless its file holds two that
// differ. Throws Error naming the tensor that is missing, of another shape or too many.
std::vector<PlannedTensor> plan_tensors(const Plan& plan, const Checkpoint& checkpoint);

// Writes the tensor's bytes as planned, piece by piece, each after a call of `check` (if there is
// one; it may throw), and lets go of the pages that were read.
void write_tensor(const PlannedTensor& tensor, const Checkpoint& checkpoint, ThreadPool& threads,
                  AtomicFile& file, const std::function<void()>& check);

}  // namespace stagecraft
