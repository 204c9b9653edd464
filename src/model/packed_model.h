#pragma once

#include <vector>

#include "base/large_memory.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {

struct PackedLinear {
  PanelMatrix weight;       // [outputs, inputs]
  std::vector<float> bias;  // [outputs], or empty
};

struct PackedLayer {
  std::vector<float> attention_norm;  // [dim]
  PackedLinear q, k, v;
  std::vector<float> q_norm, k_norm;  // [head_dim], or empty
  PackedLinear o;
  std::vector<float> mlp_norm;  // [dim]
  PackedLinear gate, up;        // their panels lie in turn: gate 0, up 0, gate 1, up 1 ...
  PackedLinear down;
};

// The weights of a model as the fast path reads them: packed once, when the model is opened, into
// one piece of memory in the order in which a token needs them. Immutable.
struct PackedModel {
  const StoredTensor* embedding = nullptr;  // stays in the file: a token needs one row of it
  std::vector<PackedLayer> layers;
  std::vector<float> final_norm;  // [dim]
  PackedLinear lm_head;           // [vocab_size, dim]
  LargeMemory memory;             // what the matrices look at
};

// Packs the tensors of a checkpoint, which must outlive the result, on all threads; the file's
// pages are let go of on the way. Takes and refuses what load_parameters does, with the same words.
PackedModel pack_model(const Config& config, const Checkpoint& checkpoint, ThreadPool& threads);

// The memory in bytes that the packed matrices take. Refuses what pack_model does.
std::size_t packed_bytes(const Config& config, const Checkpoint& checkpoint);

}  // namespace stagecraft
