#include "model/model.h"

#include <new>

#include "base/error.h"

namespace stagecraft {

Model Model::open(const std::filesystem::path& path) {
  Checkpoint checkpoint = Checkpoint::open(path);
  Config config = read_config(path);
  try {
    Parameters parameters = load_parameters(config, checkpoint);
    if (!parameters.widened.empty()) checkpoint.release_pages();  // F32 tensors come back as needed
    return {std::move(config), std::move(checkpoint), std::move(parameters)};
  } catch (const std::bad_alloc&) {
    throw Error("{}: its weights take more memory as f32 than this program may have",
                checkpoint.name());
  }
}

}  // namespace stagecraft
