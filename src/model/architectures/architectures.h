#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config_fields.h"
#include "model/plan.h"

namespace stagecraft {

// An architecture: how a config.json becomes a plan. Each file NAME.cpp of this folder defines one,
// `architecture_NAME`; CMake lists the files, so a new one is known by being there.
struct Architecture {
  std::span<const std::string_view> model_types;  // "model_type" of a config.json that it reads
  // Throws Error naming the first field that is missing, out of range, or would change the result
  // in a way that the plan does not express.
  Plan (*plan)(const ConfigFields& fields);
};

// Every "model_type" that is known, Llama's family included: "gemma2, llama, mistral or qwen2".
std::string known_model_types();

// The one for this "model_type". Throws Error naming those that are known.
const Architecture& architecture_of(const ConfigFields& fields);

}  // namespace stagecraft
