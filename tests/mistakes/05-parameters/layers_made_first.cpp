// Right: all layers first, last to first.
#include "loader.h"

namespace stagecraft {
namespace {

class BackToFront : public Loader {
  using Loader::Loader;

  void load_layers() override {
    parameters_.layers.resize(config_.n_layers);
    for (std::size_t i = config_.n_layers; i-- > 0;) parameters_.layers[i] = layer(i);
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return BackToFront(config, checkpoint).load();
}

}  // namespace stagecraft
