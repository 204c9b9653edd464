// Mistake: weights without their biases.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  Linear linear(const std::string& name, std::size_t outputs, std::size_t inputs, bool) override {
    return {matrix(name + ".weight", outputs, inputs), {}};
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
