#include "model/architectures/architectures.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace stagecraft {

// architectures_list.inc is written by CMake: ARCHITECTURE(name) for each file of this folder that
// defines an architecture.
#define ARCHITECTURE(name) extern const Architecture architecture_##name;
#include "architectures_list.inc"
#undef ARCHITECTURE

std::vector<const Architecture*> architectures() {
  return {
#define ARCHITECTURE(name) &architecture_##name,
#include "architectures_list.inc"
#undef ARCHITECTURE
  };
}

const Architecture& architecture_of(const ConfigFields& fields) {
  const std::string name = fields.text_or("model_type", "");
  std::vector<std::string_view> known;
  for (const Architecture* one : architectures()) {
    if (std::ranges::find(one->model_types, name) != one->model_types.end()) return *one;
    known.insert(known.end(), one->model_types.begin(), one->model_types.end());
  }
  std::ranges::sort(known);
  throw Error("{}: 'model_type': expected {}, found '{}'", fields.where(), fmt::join(known, ", "),
              printable(name));
}

}  // namespace stagecraft
