#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/plan.h"

namespace stagecraft {

// One tensor to write, and how.
struct OutputTensor {
  std::string name;  // Hugging Face's
  const StoredTensor* stored;
  DType dtype;
  bool exact = false;     // Weight::exact: it keeps its number format
  std::size_t pairs = 0;  // heads whose rows are written as RoPE pairs (rope_pairs.h); 0: as stored
};

// The tensors that the plan asks for, in its order, each with its stored type. If the embeddings
// are tied, the table is listed once, as the embedding, unless the file holds two tables that
// differ. Throws Error naming the tensor if one is missing, has another shape or is not in the
// plan. The result points into the checkpoint.
std::vector<OutputTensor> output_tensors(const Plan& plan, const Checkpoint& checkpoint);

// Writes the tensor's bytes, piece by piece, and then releases the pages that were read.
// Calls `check` before each piece unless it is empty; it may throw.
void write_tensor(const OutputTensor& tensor, const Checkpoint& checkpoint, ThreadPool& threads,
                  AtomicFile& file, const std::function<void()>& check);

}  // namespace stagecraft
