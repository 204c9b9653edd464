#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace stagecraft {

// The elements of the arrays that a reference has led into, by the path from the root. A schema may
// have thousands of references into one long array, which should not be read for each of them.
using ArrayElements = std::map<std::string, std::vector<JsonNode>>;

// The node that a "$ref" refers to: a JSON Pointer (RFC 6901) into the document of `root`,
// "#/$defs/NAME", in which %20 is a blank. Throws Error naming the place of `ref` if it is not such
// a pointer or no node is there. `known`: of this root; empty at first.
JsonNode json_at(JsonNode root, JsonNode ref, ArrayElements& known);

}  // namespace stagecraft
