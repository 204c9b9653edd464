#pragma once

#include <filesystem>
#include <string>

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
// Throws Error that names a known model with a similar name, or the command to pull a missing
// model, or the folders that were searched.
std::filesystem::path find_model(const std::string& given, const std::string& default_name);

// True if find_model() found `given` as the name of a model, not as a path.
bool is_found_by_name(const std::string& given);

}  // namespace stagecraft
