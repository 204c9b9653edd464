#include "model/named_tensors.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {

bool is_not_needed(const std::string& name, std::span<const std::string> unused) {
  const auto ends_name = [&](const std::string& end) { return name.ends_with(end); };
  return name.ends_with(".rotary_emb.inv_freq") || std::ranges::any_of(unused, ends_name);
}

const StoredTensor* NamedTensors::take(const std::string& name) {
  taken_.insert(name);
  return checkpoint_.find(name);
}

void NamedTensors::refuse_leftovers(std::span<const std::string> unused) const {
  for (const StoredTensor* tensor : checkpoint_.tensors()) {
    if (taken_.contains(tensor->name)) continue;
    if (is_not_needed(tensor->name, unused)) continue;
    throw Error("{}: tensor '{}' {} is not part of the model that config.json describes",
                checkpoint_.name(), printable(tensor->name), shape_text(tensor->shape));
  }
}

}  // namespace stagecraft
