#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/error.h"
#include "checkpoint/model_source.h"

namespace stagecraft {

// The folder or file of a model. `given` is a path, or the name of a model that `./stage pull`
// brought, NAME or OWNER/NAME, also NAME:FILE where a folder holds several: under
// $STAGECRAFT_MODELS, else under ${XDG_CACHE_HOME:-~/.cache}/stagecraft/models. A path that exists
// is never taken for a name. For a folder without config.json: the one file in it that is a model.
//
// Where it is empty: the model of that default name ("story", "chat") that comes with the project,
// under $STAGECRAFT_HOME/models, else beside the installed program in ../share/stagecraft/models.
//
// Throws Error naming the command that pulls what is not there, or the places looked at.
std::filesystem::path find_model(const std::string& given, const std::string& default_name);

// Calls `run`. If the model computes NaN, the Error begins with the model's path.
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
