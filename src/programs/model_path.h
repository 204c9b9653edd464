#pragma once

#include <filesystem>
#include <string>

namespace stagecraft {

// The folder of a model: what the person gave, or where the model of that name ("story", "chat")
// comes with the project: under $STAGECRAFT_HOME/models, else beside the installed program in
// ../share/stagecraft/models. Throws Error naming the places looked at.
std::filesystem::path find_model(const std::string& given, const std::string& default_name);

}  // namespace stagecraft
