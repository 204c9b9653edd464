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
// document, minLength, maxLength, pattern, format (json_format.h), minimum, maximum,
// exclusiveMinimum, exclusiveMaximum, and multipleOf 1, 0.1, 0.01 ... Annotations are ignored, and
// so is a format that is not known.
enum class BeyondGrammar {  // what happens to the other keywords
  Refuse,  // an Error names the place: ignoring it would silently allow invalid texts
  // The grammar allows more texts than the keyword does, at worst any JSON value. Objects that lose
  // a keyword may have other members, because a valid value may need them.
  Ignore,
};
// Throws Error naming the place, too, if a keyword has a wrong value ("minLength": "3"), or if no
// value is valid; a GrammarError if the grammar is too large.
std::string json_schema_gbnf(JsonNode schema, BeyondGrammar beyond = BeyondGrammar::Refuse);
// What Grammar::parse found in a grammar that was made from a schema. (Its own message may name a
// line of a text that the user does not see.)
std::string json_schema_problem(const Error& error);

// Puts the rules of several schemas into one grammar. The caller may add rules of its own.
class JsonGrammar {
 public:
  JsonGrammar();
  ~JsonGrammar();
  JsonGrammar(const JsonGrammar&) = delete;
  JsonGrammar& operator=(const JsonGrammar&) = delete;

  // Returns a GBNF expression for the texts of this schema.
  std::string add(JsonNode schema, BeyondGrammar beyond = BeyondGrammar::Refuse);
  // The same for objects only: a schema that allows any value, such as {}, stands for any object.
  // Throws Error, too, if the schema allows no objects; with Refuse also if it allows both objects
  // and other values.
  std::string add_object(JsonNode schema, BeyondGrammar beyond = BeyondGrammar::Refuse);
  // All rules that the returned expressions need.
  std::string rules() const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

}  // namespace stagecraft
