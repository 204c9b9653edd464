#pragma once

#include "base/json.h"

namespace stagecraft {

// The node that a "$ref" refers to: a JSON Pointer (RFC 6901) into the document of `root`,
// "#/$defs/NAME". Throws Error naming the place of `ref` if it is not such a pointer or no node is
// there.
JsonNode json_at(JsonNode root, JsonNode ref);

}  // namespace stagecraft
