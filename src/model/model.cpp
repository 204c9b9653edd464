#include "model/model.h"

#include "base/error.h"

namespace stagecraft {

Model Model::open(const std::filesystem::path& folder) {
  Checkpoint checkpoint = Checkpoint::open(folder);
  Config config = read_config(folder);
  Parameters parameters = load_parameters(config, checkpoint);
  return {std::move(config), std::move(checkpoint), std::move(parameters)};
}

}  // namespace stagecraft
