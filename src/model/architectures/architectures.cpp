#include "model/architectures/architectures.h"

#include <algorithm>
#include <vector>

#include <fmt/ranges.h>

#include "base/alternatives.h"
#include "model/family.h"

namespace stagecraft {

// architectures_list.inc is written by CMake: ARCHITECTURE(name) for each file of this folder that
// defines an architecture.
#define ARCHITECTURE(name) extern const Architecture architecture_##name;
#include "architectures_list.inc"
#undef ARCHITECTURE

namespace {

std::vector<const Architecture*> architectures() {
  return {
#define ARCHITECTURE(name) &architecture_##name,
#include "architectures_list.inc"
#undef ARCHITECTURE
  };
}

}  // namespace

std::string known_model_types() {
  std::vector<std::string_view> types = llama_family_types();
  for (const Architecture* one : architectures()) {
    types.insert(types.end(), one->model_types.begin(), one->model_types.end());
  }
  return alternatives(std::move(types));
}

const Architecture& architecture_of(const ConfigFields& fields) {
  const std::string name = fields.text_or("model_type", "");
  for (const Architecture* one : architectures()) {
    if (std::ranges::find(one->model_types, name) != one->model_types.end()) return *one;
  }
  throw Error("{}: 'model_type': expected {}, found '{}'", fields.where(), known_model_types(),
              printable(name));
}

}  // namespace stagecraft
