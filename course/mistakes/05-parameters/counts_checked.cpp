// Mistake: only the number of elements is checked.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  const StoredTensor& take(const std::string& name, const Shape& shape) override {
    const StoredTensor* tensor = tensors_.take(name);
    if (tensor == nullptr) throw Error("'{}' is missing", name);
    std::size_t found = 1;
    std::size_t expected = 1;
    for (const std::size_t n : tensor->shape) found *= n;
    for (const std::size_t n : shape) expected *= n;
    if (found != expected) {
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
