// Mistake: gate's projection where up's belongs, and the other way round.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  std::string part_name(const std::string& part) override {
    return exchanged(part, "gate_proj", "up_proj");
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
