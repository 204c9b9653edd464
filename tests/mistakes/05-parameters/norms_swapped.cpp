// Mistake: the norm of the MLP before attention.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  std::string part_name(const std::string& part) override {
    return exchanged(part, "input_layernorm", "post_attention_layernorm");
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
