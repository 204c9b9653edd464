// Mistake: no bias on the output projection.
#include "loader.h"

namespace stagecraft {

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  Config without = config;
  without.o_bias = false;
  return Loader(without, checkpoint).load();
}

}  // namespace stagecraft
