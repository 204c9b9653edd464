// Any text is JSON or an Error.
#include "base/json.h"

#include "tests/fuzz/fuzz.h"

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
  try {
    const Json json(as_text(data, size), "input");
    json.root().describe();
    walk(json.root());
  } catch (const Error&) {
  }
  return 0;
}
