#include "model/named_tensors.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {

bool is_not_needed(const std::string& name, std::span<const std::string> unused) {
  const auto fits = [&](const std::string& part) {
    return name.ends_with(part) || (part.ends_with('.') && name.starts_with(part));
  };
  return name.ends_with(".rotary_emb.inv_freq") || std::ranges::any_of(unused, fits);
}

const StoredTensor* NamedTensors::take(const std::string& name) {
  taken_.insert(name);
  return checkpoint_.find(name);
}

void NamedTensors::refuse_leftovers(std::span<const std::string> unused) const {
  for (const StoredTensor* tensor : checkpoint_.tensors()) {
    if (taken_.contains(tensor->name)) continue;
    if (is_not_needed(tensor->name, unused)) continue;
    throw Error("{}: tensor '{}' {} is not part of the model that {} describes", checkpoint_.name(),
                printable(checkpoint_.stored_name(tensor->name)), shape_text(tensor->shape),
                checkpoint_.described_by());
  }
}

}  // namespace stagecraft
