#pragma once

#include <string>

#include "checkpoint/flm.h"

namespace stagecraft {

// The config.json of a .flm file. Its pairs are the members of the config.json that the model had,
// each written as Python prints it ("True", "1e-06", "{'factor': 8.0}"): they become that
// config.json again, and are read as any other, with the same refusals. Throws Error naming the
// key.
std::string flm_config_json(const FlmFile& file);

}  // namespace stagecraft
