// Mistake: told that there are none.
#include "loader.h"

namespace stagecraft {

Parameters load_parameters(const Config& config, const Checkpoint& checkpoint) {
  Config none = config;
  none.qkv_bias = none.o_bias = none.mlp_bias = false;
  return Loader(none, checkpoint).load();
}

}  // namespace stagecraft
