#include "model/model.h"

#include <new>

#include "base/error.h"

namespace stagecraft {

Model Model::open(const std::filesystem::path& path, Layers layers, std::size_t n_threads) {
  Checkpoint checkpoint = Checkpoint::open(path);  // first: where both are broken, this is told
  Model model{read_config(path), std::move(checkpoint), {}, nullptr, KvType::F32};
  try {
    if (layers == Layers::Fast) {
      ThreadPool threads(n_threads);
      model.packed =
          std::make_unique<PackedModel>(pack_model(model.config, model.checkpoint, threads));
    } else {
      model.parameters = load_parameters(model.config, model.checkpoint);
      // F32 tensors come back as needed.
      if (!model.parameters.converted.empty()) model.checkpoint.release_pages();
    }
    return model;
  } catch (const std::bad_alloc&) {
    throw Error("{}: its weights take more memory{} than this program may have",
                model.checkpoint.name(), layers == Layers::Fast ? "" : " as f32");
  }
}

}  // namespace stagecraft
