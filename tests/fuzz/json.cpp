// Any text must be read as JSON or give an Error.
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
  } catch (const Error&) {  // the node is not an object
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
