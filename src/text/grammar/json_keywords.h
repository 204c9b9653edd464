#pragma once

#include <string_view>

#include "base/json.h"

namespace stagecraft {

// What a keyword of JSON Schema restricts.
enum class KeywordKind {
  Annotation,   // nothing
  Value,        // const, enum and type
  Combination,  // by other schemas for the same value: anyOf, $ref ...
  Object,       // values of one type
  Array,
  String,
  Number,
  Unknown
};

struct JsonKeyword {
  KeywordKind kind = KeywordKind::Unknown;
  bool in_grammars = false;  // a grammar can express it, at least in some cases
};
JsonKeyword json_keyword(std::string_view name);

// Whether the schema has a keyword that restricts values of this type.
bool has_keywords_of(JsonNode schema, KeywordKind type);

// The keyword whose meaning a grammar expresses first: "const", "enum", "type", "$ref", "anyOf",
// "oneOf", "allOf", or "" if there is none of them.
std::string_view deciding_keyword(JsonNode schema);

// The keyword has a value that allows everything: "uniqueItems": false.
bool allows_everything(JsonNode keyword);

// The schema in an "allOf" that a grammar expresses: the first one that says most.
JsonNode main_part(JsonNode all_of);

}  // namespace stagecraft
