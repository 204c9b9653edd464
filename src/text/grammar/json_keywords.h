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

// Whether keywords of this kind restrict only values of one type: Object, Array, String, Number.
bool restricts_one_type(KeywordKind kind);

// Whether the schema has a keyword of this kind.
bool has_keywords_of(JsonNode schema, KeywordKind kind);

// The keyword that a grammar follows: "const", "enum", "type", "$ref", "anyOf", "oneOf", "allOf",
// or "" if there is none of them. "type" comes before "$ref" and the others only if the schema also
// restricts values of one type: of {"type": "object", "anyOf": [...]} a grammar follows "anyOf".
std::string_view deciding_keyword(JsonNode schema);

// The keyword has a value that allows everything: "uniqueItems": false.
bool allows_everything(JsonNode keyword);

// The schema in an "allOf" that a grammar expresses: the first one that says most.
JsonNode main_part(JsonNode all_of);

}  // namespace stagecraft
