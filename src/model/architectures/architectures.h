#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config_fields.h"
#include "model/plan.h"

namespace stagecraft {

// An architecture: how a config.json becomes a plan. Each file NAME.cpp of this folder defines one,
// `architecture_NAME` (not architectures.cpp, llama.cpp and *_common.cpp). CMake lists the files,
// so a new file needs no registration.
struct Architecture {
  std::span<const std::string_view> model_types;  // the values of "model_type" that it reads
  // Throws Error naming the first field that is missing, out of range, or would change the result
  // in a way that the plan does not express.
  Plan (*plan)(const ConfigFields& fields);
};

// Every supported "model_type", those of the Llama family included: "gemma2, llama, mistral or
// qwen2".
std::string known_model_types();

// The architecture for the "model_type" of `fields`. Throws Error naming the supported types if it
// is not one of them.
const Architecture& architecture_of(const ConfigFields& fields);

}  // namespace stagecraft
