#pragma once

#include "base/json.h"

namespace stagecraft {

// What a "$ref" points to: a JSON Pointer (RFC 6901) into the document of `root`, "#/$defs/NAME".
// Throws Error naming the place of `ref`, where it is no such pointer, or nothing stands there.
JsonNode json_at(JsonNode root, JsonNode ref);

}  // namespace stagecraft
