#pragma once

#include <string>

#include "formats/flm/file.h"

namespace stagecraft {

// The config.json of a .flm file. The key-value pairs of the file are the members of the original
// config.json, each value written as Python prints it ("True", "1e-06", "{'factor': 8.0}"). They
// are converted back to JSON and then read as any other config.json, with the same errors.
std::string flm_config_json(const FlmFile& file);

}  // namespace stagecraft
