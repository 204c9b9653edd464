// Mistake: weights expected as [inputs, outputs].
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  Linear linear(const std::string& name, std::size_t outputs, std::size_t inputs,
                bool bias) override {
    Linear result;
    result.weight = matrix(name + ".weight", inputs, outputs);
    if (bias) result.bias = vector(name + ".bias", outputs);
    return result;
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
