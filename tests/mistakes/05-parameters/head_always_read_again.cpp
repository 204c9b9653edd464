// Mistake: tied or not, two tables are wanted.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  MatrixView<const float> head() override {
    const StoredTensor& table = take("lm_head.weight", {config_.vocab_size, config_.dim});
    return {as_f32(table), table.shape[0], table.shape[1]};
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
