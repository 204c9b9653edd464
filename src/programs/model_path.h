#pragma once

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_source.h"
#include "generation/broken_model.h"

namespace stagecraft {

// Throws Error if `out`, a file that is to be written, could be one of the model's own files: it is
// the model, or it exists in the model's folder.
void refuse_model_file(const std::filesystem::path& out, const ModelSource& model);

// Calls `run`. Puts the model's path before an Error about what the model computed, such as NaN.
template <class Run>
auto naming_the_model(const ModelSource& model, const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (!std::string_view(error.what()).starts_with(kBrokenModelPrefix)) throw;
    throw Error("{}: {}", model.name(), error.what());
  }
}

}  // namespace stagecraft
