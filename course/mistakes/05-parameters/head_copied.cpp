// Mistake: a copy of the embedding for the head.
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  MatrixView<const float> head() override {
    if (!is_one_table()) return Loader::head();
    Matrix<float>& copy = parameters_.converted.emplace_back(config_.vocab_size, config_.dim);
    std::copy_n(parameters_.embedding.data(), config_.vocab_size * config_.dim, copy.data());
    return copy.view();
  }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
