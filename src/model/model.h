#pragma once

#include <filesystem>
#include <memory>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "model/packed_model.h"
#include "model/parameters.h"

namespace stagecraft {

// What computes a pass: the textbook's layers, which the stages are about, or the fast ones.
enum class Layers { Textbook, Fast };

// How the fast layers keep the keys and values of a sequence: as they are, rounded to halves, or to
// bytes by blocks of 32: half of the memory or less than a third, and less to read in a long text.
enum class KvType { F32, F16, Q8_0 };

// An opened model: immutable, so any number of sequences and threads may share it.
struct Model {
  Config config;
  Checkpoint checkpoint;  // owns the mapped bytes that what follows looks at
  Parameters parameters;  // of the textbook's layers; empty where the fast ones are to run
  std::unique_ptr<const PackedModel> packed;  // of the fast layers, or nullptr
  KvType kv_type = KvType::F32;               // of all sequences of the fast layers

  Layers layers() const { return packed != nullptr ? Layers::Fast : Layers::Textbook; }

  // `path` is a folder with config.json and the weights, or a GGUF file. n_threads: how many pack
  // the weights for the fast layers. Throws Error.
  static Model open(const std::filesystem::path& path, Layers layers = Layers::Textbook,
                    std::size_t n_threads = 1);
};

}  // namespace stagecraft
