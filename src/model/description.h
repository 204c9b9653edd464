#pragma once

#include <optional>

#include "checkpoint/model_source.h"
#include "model/config.h"
#include "model/plan.h"

namespace stagecraft {

// The arithmetic of a model, read from its files.
struct ModelDescription {
  Plan plan;
  // Only for the Llama family, whose layers the course also implements; else nullopt.
  std::optional<Config> config;
};

// Reads the config.json and generation_config.json of a folder, or the same information from a
// model file. Throws Error naming the file and the field.
ModelDescription describe_model(const ModelSource& model);

}  // namespace stagecraft
