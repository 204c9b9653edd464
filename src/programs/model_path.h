#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_source.h"

namespace stagecraft {

// Finds the folder or file of a model. `given` is a path, or a name: NAME, OWNER/NAME, or NAME:FILE
// if a folder holds several models. A path that exists is never read as a name. Names are searched
// in $STAGECRAFT_MODELS, in ${XDG_CACHE_HOME:-~/.cache}/stagecraft/models, where ./stage pull
// stores models, and among the models that come with the project. For a folder without config.json,
// returns the one file in it that is a model.
//
// If `given` is empty, finds the model `default_name` ("story", "chat") that comes with the
// project: in $STAGECRAFT_HOME/models, or beside the installed program in
// ../share/stagecraft/models.
//
// Throws Error that names the command to pull a missing model, or the folders that were searched.
std::filesystem::path find_model(const std::string& given, const std::string& default_name);

// Throws Error if `out`, a file that is to be written, could be one of the model's own files: it is
// the model, or it exists in the model's folder.
void refuse_model_file(const std::filesystem::path& out, const ModelSource& model);

// Calls `run`. Puts the model's path before an Error about what the model computed, such as NaN.
template <class Run>
auto naming_the_model(const ModelSource& model, const Run& run) {
  try {
    return run();
  } catch (const Error& error) {
    if (!std::string_view(error.what()).starts_with("the model ")) throw;
    throw Error("{}: {}", model.name(), error.what());
  }
}

}  // namespace stagecraft
