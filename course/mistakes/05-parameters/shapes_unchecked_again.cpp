// Mistake: the shape compared with itself.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  const StoredTensor& take(const std::string& name, const Shape& shape) override {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr) throw Error("'{}' is missing", name);
    if (shape.empty() || tensor->shape.empty()) {
      throw Error("'{}' is {}, not {}", name, shape_text(tensor->shape), shape_text(shape));
    }
    return *tensor;
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
