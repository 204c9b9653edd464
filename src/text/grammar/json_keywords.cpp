#include "text/grammar/json_keywords.h"

#include <algorithm>

namespace stagecraft {
namespace {

struct NamedKeyword {
  std::string_view name;
  KeywordKind kind;
  bool in_grammars = false;
};

constexpr NamedKeyword kKeywords[] = {{"title", KeywordKind::Annotation},
                                      {"description", KeywordKind::Annotation},
                                      {"default", KeywordKind::Annotation},
                                      {"example", KeywordKind::Annotation},
                                      {"examples", KeywordKind::Annotation},
                                      {"$schema", KeywordKind::Annotation},
                                      {"$id", KeywordKind::Annotation},
                                      {"id", KeywordKind::Annotation},
                                      {"$anchor", KeywordKind::Annotation},
                                      {"$dynamicAnchor", KeywordKind::Annotation},
                                      {"$vocabulary", KeywordKind::Annotation},
                                      {"$comment", KeywordKind::Annotation},
                                      {"readOnly", KeywordKind::Annotation},
                                      {"writeOnly", KeywordKind::Annotation},
                                      {"deprecated", KeywordKind::Annotation},
                                      {"$defs", KeywordKind::Annotation},
                                      {"definitions", KeywordKind::Annotation},
                                      {"discriminator", KeywordKind::Annotation},
                                      {"externalDocs", KeywordKind::Annotation},
                                      {"contentMediaType", KeywordKind::Annotation},
                                      {"contentEncoding", KeywordKind::Annotation},
                                      {"contentSchema", KeywordKind::Annotation},
                                      {"const", KeywordKind::Value, true},
                                      {"enum", KeywordKind::Value, true},
                                      {"type", KeywordKind::Value, true},
                                      {"$ref", KeywordKind::Combination, true},
                                      {"anyOf", KeywordKind::Combination, true},
                                      {"oneOf", KeywordKind::Combination, true},
                                      {"allOf", KeywordKind::Combination, true},
                                      {"not", KeywordKind::Combination},
                                      {"if", KeywordKind::Combination},
                                      {"then", KeywordKind::Combination},
                                      {"else", KeywordKind::Combination},
                                      {"dependentSchemas", KeywordKind::Combination},
                                      {"dependencies", KeywordKind::Combination},
                                      {"$dynamicRef", KeywordKind::Combination},
                                      {"$recursiveRef", KeywordKind::Combination},
                                      {"properties", KeywordKind::Object, true},
                                      {"required", KeywordKind::Object, true},
                                      {"additionalProperties", KeywordKind::Object, true},
                                      {"patternProperties", KeywordKind::Object},
                                      {"propertyNames", KeywordKind::Object},
                                      {"minProperties", KeywordKind::Object},
                                      {"maxProperties", KeywordKind::Object},
                                      {"dependentRequired", KeywordKind::Object},
                                      {"unevaluatedProperties", KeywordKind::Object},
                                      {"items", KeywordKind::Array, true},
                                      {"prefixItems", KeywordKind::Array, true},
                                      {"additionalItems", KeywordKind::Array, true},
                                      {"minItems", KeywordKind::Array, true},
                                      {"maxItems", KeywordKind::Array, true},
                                      {"uniqueItems", KeywordKind::Array},
                                      {"contains", KeywordKind::Array},
                                      {"minContains", KeywordKind::Array},
                                      {"maxContains", KeywordKind::Array},
                                      {"unevaluatedItems", KeywordKind::Array},
                                      {"minLength", KeywordKind::String, true},
                                      {"maxLength", KeywordKind::String, true},
                                      {"pattern", KeywordKind::String, true},
                                      {"format", KeywordKind::String, true},
                                      {"minimum", KeywordKind::Number, true},
                                      {"maximum", KeywordKind::Number, true},
                                      {"exclusiveMinimum", KeywordKind::Number, true},
                                      {"exclusiveMaximum", KeywordKind::Number, true},
                                      {"multipleOf", KeywordKind::Number, true}};

bool has_word(JsonNode schema, const char* key, const char* type) {
  const auto value = schema.find(key);
  return value && value->is_string() && value->string() == type;
}

// Whether the schema has a keyword of a kind for which `is` holds.
template <class Is>
bool has_keyword(JsonNode schema, Is is) {
  for (const JsonNode member : schema.members()) {
    if (!member.is_null() && is(json_keyword(member.key()).kind)) return true;
  }
  return false;
}

}  // namespace

JsonKeyword json_keyword(std::string_view name) {
  const auto* found = std::ranges::find(kKeywords, name, &NamedKeyword::name);
  if (found != std::end(kKeywords)) return {found->kind, found->in_grammars};
  return {name.starts_with("x-") ? KeywordKind::Annotation : KeywordKind::Unknown, false};
}

bool restricts_one_type(KeywordKind kind) {
  return kind == KeywordKind::Object || kind == KeywordKind::Array || kind == KeywordKind::String ||
         kind == KeywordKind::Number;
}

bool has_keywords_of(JsonNode schema, KeywordKind kind) {
  return has_keyword(schema, [&](KeywordKind one) { return one == kind; });
}

std::string_view deciding_keyword(JsonNode schema) {
  if (schema.member("const")) return "const";
  if (schema.find("enum")) return "enum";
  const bool has_type = schema.find("type").has_value();
  if (has_type && has_keyword(schema, restricts_one_type)) return "type";
  for (const char* key : {"$ref", "anyOf", "oneOf", "allOf"}) {
    if (schema.find(key)) return key;
  }
  return has_type ? "type" : "";
}

bool allows_everything(JsonNode keyword) {
  const std::string_view name = keyword.key();
  if (keyword.is_null()) return true;
  if (name == "uniqueItems") return keyword.is_boolean() && !keyword.boolean();
  if (name == "minProperties") return keyword.is_number() && keyword.number() == 0;
  if (name == "propertyNames" || name == "contentSchema") {
    return (keyword.is_boolean() && keyword.boolean()) ||
           (keyword.is_object() && keyword.size() == 1 && has_word(keyword, "type", "string"));
  }
  return false;
}

JsonNode main_part(JsonNode all_of) {
  std::optional<JsonNode> first;
  for (const JsonNode part : all_of.elements()) {
    if (!first) first = part;
    if (part.is_object() && (!deciding_keyword(part).empty() || part.find("properties"))) {
      return part;
    }
  }
  return *first;
}

}  // namespace stagecraft
