// Any text is JSON or an Error, for both readers; what both take has the same kind of root.
#include "base/json.h"

#include "tests/fuzz/fuzz.h"
#include "text/json_document.h"

using namespace stagecraft;

namespace {

void walk(JsonNode node) {
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) walk(element);
    return;
  }
  try {
    for (const JsonNode member : node.members()) {
      member.key();
      walk(member);
    }
  } catch (const Error&) {  // no object: the accessors say what it is
    node.where();
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = as_text(data, size);
  bool is_array = false;
  bool strict = false;
  try {
    const Json value = parse_json(text, "input");
    describe_json(value);
    is_array = value.is_array();
    strict = true;
  } catch (const Error&) {
  }
  try {
    const JsonDocument document = JsonDocument::parse(text, "input");
    walk(document.root());
    if (strict) require(document.root().is_array() == is_array, "two readers see one document");
  } catch (const Error&) {
  }
  return 0;
}
