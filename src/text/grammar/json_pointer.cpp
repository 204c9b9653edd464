#include "text/grammar/json_pointer.h"

#include <fmt/format.h>

#include <algorithm>

namespace stagecraft {
namespace {

JsonNode child(JsonNode ref, JsonNode node, const std::string& key) {
  if (node.is_object()) {
    if (const auto found = node.find(key)) return *found;
  } else if (node.is_array()) {
    std::size_t i = 0;
    for (const JsonNode element : node.elements()) {
      if (fmt::format("{}", i++) == key) return element;
    }
  }
  ref.refuse("a path to a value in this document");
}

}  // namespace

JsonNode json_at(JsonNode root, JsonNode ref) {
  std::string_view pointer = ref.string();
  if (!pointer.starts_with("#")) ref.refuse("a path in this document, such as #/$defs/NAME");
  JsonNode node = root;
  pointer.remove_prefix(1);
  while (!pointer.empty()) {
    if (pointer[0] != '/') ref.refuse("a path in this document, such as #/$defs/NAME");
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string key;
    for (std::size_t i = 1; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end;
      key += !escaped ? pointer[i] : pointer[++i] == '1' ? '/' : '~';
    }
    pointer.remove_prefix(end);
    node = child(ref, node, key);
  }
  return node;
}

}  // namespace stagecraft
