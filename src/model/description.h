#pragma once

#include <optional>

#include "checkpoint/model_source.h"
#include "model/config.h"
#include "model/plan.h"

namespace stagecraft {

// What a model's files say about its arithmetic.
struct ModelDescription {
  Plan plan;
  // Of Llama's family, whose layers the course writes too; of no other.
  std::optional<Config> config;
};

// Reads the config.json of a model's folder, or what a model file says instead. Throws Error naming
// the file and the field.
ModelDescription describe_model(const ModelSource& model);

}  // namespace stagecraft
