// Mistake: errors that name nothing.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  const StoredTensor& take(const std::string& name, const Shape& shape) override {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr) throw Error("a tensor is missing");
    if (tensor->shape != shape) {
      throw Error("a tensor is {}, not {}", shape_text(tensor->shape), shape_text(shape));
    }
    return *tensor;
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
