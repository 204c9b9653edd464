#pragma once

#include <memory>
#include <string>

#include "base/json.h"

namespace stagecraft {

// Writes a JSON Schema (2020-12) as a GBNF grammar. Every text of the grammar is valid, except that
// oneOf is treated as anyOf. The grammar allows fewer texts than the schema: members come in the
// order of the schema, an object with `properties` has no other members unless additionalProperties
// allows them, and white space is limited. With fewer choices, a small model makes fewer mistakes.
//
//   {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
//   root ::= "{" ws "\"age\":" ws integer ws "}"
//
// Supported: type, properties, required, additionalProperties, items, prefixItems, minItems,
// maxItems, enum, const, anyOf, oneOf (as anyOf), allOf with one schema, $ref into the same
// document, minLength, maxLength, pattern, format (date, time, date-time, uuid), minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, and for integers multipleOf 1. Annotations are ignored.
// Throws Error naming the place for every other keyword: ignoring it would silently allow invalid
// texts.
std::string json_schema_gbnf(JsonNode schema);

// Puts the rules of several schemas into one grammar. The caller may add rules of its own.
class JsonGrammar {
 public:
  JsonGrammar();
  ~JsonGrammar();
  JsonGrammar(const JsonGrammar&) = delete;
  JsonGrammar& operator=(const JsonGrammar&) = delete;

  // Returns a GBNF expression for the texts of this schema.
  std::string add(JsonNode schema);
  // The same for objects only: a schema that allows any value, such as {}, stands for any object.
  // Throws Error, too, if the schema allows both objects and other values, or no objects.
  std::string add_object(JsonNode schema);
  // All rules that the returned expressions need.
  std::string rules() const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace stagecraft
