#include "programs/model_path.h"

namespace stagecraft {

void refuse_model_file(const std::filesystem::path& out, const ModelSource& model) {
  std::error_code ignored;
  const bool in_folder = std::filesystem::equivalent(
      out.has_parent_path() ? out.parent_path() : ".", model.path(), ignored);
  const bool same = std::filesystem::equivalent(out, model.path(), ignored);
  if (!same && !(in_folder && std::filesystem::exists(out, ignored))) return;
  throw Error("{}: expected a file that does not belong to the model, found a file of {}",
              printable(out.string(), 1000), model.name());
}

}  // namespace stagecraft
