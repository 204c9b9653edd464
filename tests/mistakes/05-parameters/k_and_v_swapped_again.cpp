// Mistake: exchanged after loading.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  LayerParameters layer(std::size_t i) override {
    LayerParameters p = Loader::layer(i);
    std::swap(p.attention.k, p.attention.v);
    return p;
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
