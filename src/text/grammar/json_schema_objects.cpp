#include "text/grammar/json_schema_objects.h"

#include <set>
#include <string>
#include <vector>

#include "text/grammar/json_keywords.h"
#include "text/grammar/json_pointer.h"

namespace stagecraft {
namespace {

constexpr std::string_view kSchemaOfObjects = "a schema of objects (\"type\": \"object\")";

// The schemas that decide what the values are.
std::vector<JsonNode> parts_of(JsonNode schema) {
  std::vector<JsonNode> parts;
  const std::string_view key = deciding_keyword(schema);
  if (key == "allOf") parts.push_back(main_part(schema.at(key)));
  if (key == "anyOf" || key == "oneOf") {
    for (const JsonNode part : schema.at(key).elements()) parts.push_back(part);
  }
  return parts;
}

void check_object(JsonNode schema) {
  if (const auto only = schema.member("const")) {
    if (!only->is_object()) only->refuse("an object");
  } else if (const auto values = schema.find("enum")) {
    for (const JsonNode value : values->elements()) {
      if (!value.is_object()) value.refuse("an object");
    }
  } else if (const auto type = schema.find("type")) {
    if (type->is_string() && type->string() == "object") return;
    if (type->is_string()) type->refuse("\"object\"");
    for (const JsonNode one : type->elements()) {
      if (one.string() != "object") one.refuse("\"object\"");
    }
  } else if (!has_keywords_of(schema, KeywordKind::Object)) {
    schema.refuse(kSchemaOfObjects, "one without a type");
  }
}

}  // namespace

void check_objects(JsonNode root) {
  std::set<std::string, std::less<>> seen;  // pointers: a schema may refer to itself
  ArrayElements arrays;
  std::vector<JsonNode> todo = {root};
  while (!todo.empty()) {
    const JsonNode schema = todo.back();
    todo.pop_back();
    if (!schema.is_object()) schema.refuse(kSchemaOfObjects);
    if (deciding_keyword(schema) == "$ref") {
      const auto ref = schema.find("$ref");
      if (seen.emplace(ref->string()).second) todo.push_back(json_at(root, *ref, arrays));
      continue;
    }
    const std::vector<JsonNode> parts = parts_of(schema);
    todo.insert(todo.end(), parts.rbegin(), parts.rend());
    if (parts.empty()) check_object(schema);
  }
}

}  // namespace stagecraft
