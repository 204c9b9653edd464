// mistakes.json holds edits of this program, which is right.
// clang-format off
#include "loader.h"

namespace stagecraft {
namespace {

class Mistaken : public Loader {
  using Loader::Loader;

  std::string part_name(const std::string& part) override { return part; }
};

}  // namespace

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  return Mistaken(config, checkpoint).load();
}

}  // namespace stagecraft
