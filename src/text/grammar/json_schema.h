#pragma once

#include <memory>
#include <string>

#include "base/json.h"

namespace stagecraft {

// The grammar, in GBNF, of the JSON texts that a JSON Schema (2020-12) allows, or of some of them:
// members come in the order of the schema, an object with named properties has no others unless
// additionalProperties says so, and blanks are few. So a small model is not led astray, and every
// text of the grammar is valid.
//
//   {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
//   root ::= "{" ws "\"age\":" ws integer ws "}"
//
// Known: type, properties, required, additionalProperties, items, prefixItems, minItems, maxItems,
// enum, const, anyOf, oneOf (as anyOf), allOf of one, $ref into the same document, minLength,
// maxLength, pattern, format (date, time, date-time, uuid), and for integers minimum, maximum,
// exclusiveMinimum, exclusiveMaximum. Annotations are skipped. Throws Error naming the place for
// everything else: what is not understood is never left out in silence.
std::string json_schema_gbnf(JsonNode schema);

// Rules of several schemas in one grammar, and rules of its owner beside them.
class JsonGrammar {
 public:
  JsonGrammar();
  ~JsonGrammar();
  JsonGrammar(const JsonGrammar&) = delete;
  JsonGrammar& operator=(const JsonGrammar&) = delete;

  // What stands for a text of this schema in a rule.
  std::string add(JsonNode schema);
  // All rules that these need.
  std::string rules() const;

 private:
  class Writer;
  std::unique_ptr<Writer> writer_;
};

// Any JSON object.
std::string json_object_gbnf();

// A literal of GBNF that stands for `text`, which must be UTF-8.
std::string gbnf_literal(std::string_view text);

}  // namespace stagecraft
