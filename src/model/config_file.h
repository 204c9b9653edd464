#pragma once

#include <string_view>

#include "checkpoint/model_file.h"
#include "checkpoint/model_source.h"
#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// The config.json of a model, or the same information from a file of another format.
NamedText config_text(const ModelSource& model);

// Fields with this prefix exist only in the text that config_text makes from another format. They
// tell how that format stores a weight differently from a folder. The config.json of a folder must
// not have them.
inline constexpr std::string_view kStoredFields = "stored_";
// One of them: an array of numbers that divide the frequencies of RoPE, one per pair of a head.
inline constexpr std::string_view kRopeFactors = "stored_rope_factors";

// The Config of a model of the Llama family; generation_config.json is not read. Throws Error as
// parse_config does, also for other families.
Config read_config(const ModelSource& model);
// The same with a text that config_text(model) returned.
Config read_config(const ModelSource& model, const NamedText& text);
// Adds the factors of RoPE (kRopeFactors) to the Config of a model file. parse_config ignores them.
void take_rope_factors(const ConfigFields& fields, Config& config);

}  // namespace stagecraft
