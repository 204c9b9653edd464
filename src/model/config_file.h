#pragma once

#include <string>
#include <string_view>

#include "checkpoint/model_source.h"
#include "model/config.h"

namespace stagecraft {

// The config.json of a model, or the same information from a file of another format.
struct ConfigText {
  std::string json;
  std::string where;  // names the text in errors: "models/story/config.json"
};
ConfigText config_text(const ModelSource& model);

// Fields with this prefix exist only in the text that config_text makes from another format. They
// tell how that format stores a weight differently from a folder. The config.json of a folder must
// not have them.
inline constexpr std::string_view kStoredFields = "stored_";

// The Config of a model of the Llama family; generation_config.json is not read. Throws Error as
// parse_config does, also for other families.
Config read_config(const ModelSource& model);
// The same with a text that config_text(model) returned.
Config read_config(const ModelSource& model, const ConfigText& text);

}  // namespace stagecraft
