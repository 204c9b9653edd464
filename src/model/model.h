#pragma once

#include <filesystem>

#include "checkpoint/checkpoint.h"
#include "model/config.h"
#include "model/parameters.h"

namespace stagecraft {

// An opened model: immutable, so any number of sequences and threads may share it.
struct Model {
  Config config;
  Checkpoint checkpoint;  // owns the mapped bytes that `parameters` looks at
  Parameters parameters;

  // `path` is a folder with config.json and the weights, or a GGUF file. Throws Error.
  static Model open(const std::filesystem::path& path);
};

}  // namespace stagecraft
