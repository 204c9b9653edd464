// Mistake: what is not F16 is BF16.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  void to_f32(const StoredTensor& tensor, Words words, std::span<float> out) override {
    if (tensor.dtype == DType::F16) {
      f16_to_f32(words, out);
    } else {
      bf16_to_f32(words, out);
    }
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
