#pragma once

#include "base/json.h"

namespace stagecraft {

// Throws Error naming the first part of a schema that allows a value that is no object. The
// keywords of the schema must have the right form, which JsonGrammar::add checks.
void check_objects(JsonNode root);

}  // namespace stagecraft
