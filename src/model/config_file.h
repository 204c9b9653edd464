#pragma once

#include <string>
#include <string_view>

#include "checkpoint/model_source.h"
#include "model/config.h"

namespace stagecraft {

// The config.json that a model has, or that says what a file of another format does.
struct ConfigText {
  std::string json;
  std::string where;  // names it in errors: "models/story/config.json"
};
ConfigText config_text(const ModelSource& model);

// Fields that begin so say how a file of another format stores what a folder stores otherwise. A
// folder's config.json must not have them.
inline constexpr std::string_view kStoredFields = "stored_";

// The Config of a model of Llama's family; generation_config.json is not read. Throws Error as
// parse_config, and for another.
Config read_config(const ModelSource& model);
// The same of a text that config_text(model) gave.
Config read_config(const ModelSource& model, const ConfigText& text);

}  // namespace stagecraft
