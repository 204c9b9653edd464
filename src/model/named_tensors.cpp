#include "model/named_tensors.h"

#include "base/error.h"

namespace stagecraft {

const StoredTensor* NamedTensors::take(const std::string& name) {
  taken_.insert(name);
  return checkpoint_.find(name);
}

void NamedTensors::refuse_leftovers() const {
  for (const StoredTensor* tensor : checkpoint_.tensors()) {
    if (taken_.contains(tensor->name)) continue;
    if (tensor->name.ends_with(".rotary_emb.inv_freq")) continue;  // old files; computed here
    throw Error("{}: tensor '{}' {} is not part of the model that config.json describes",
                checkpoint_.name(), printable(tensor->name), shape_text(tensor->shape));
  }
}

}  // namespace stagecraft
