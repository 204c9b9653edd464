#include "text/grammar/json_pointer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/number.h"
#include "base/percent_encoding.h"

namespace stagecraft {
namespace {

// `path` names `node`, and no other one.
JsonNode child(JsonNode ref, JsonNode node, const std::string& key, const std::string& path,
               ArrayElements& known) {
  if (node.is_object()) {
    if (const auto found = node.find(key)) return *found;
  } else if (node.is_array()) {
    const auto [elements, is_new] = known.try_emplace(path);
    std::vector<JsonNode>& all = elements->second;
    if (is_new) {
      for (const JsonNode element : node.elements()) all.push_back(element);
    }
    const auto index = integer_of<std::size_t>(key);
    if (index && *index < all.size() && fmt::format("{}", *index) == key) return all[*index];
  }
  ref.refuse("a path to a value in this document");
}

}  // namespace

JsonNode json_at(JsonNode root, JsonNode ref, ArrayElements& known) {
  if (!ref.string().starts_with("#")) ref.refuse("a path in this document, such as #/$defs/NAME");
  // Behind "#", a pointer is a part of a URI (RFC 6901, section 6).
  const std::string decoded = percent_decoded(ref.string().substr(1));
  std::string_view pointer = decoded;
  JsonNode node = root;
  std::string path;
  while (!pointer.empty()) {
    if (pointer[0] != '/') ref.refuse("a path in this document, such as #/$defs/NAME");
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    std::string key;
    for (std::size_t i = 1; i < end; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < end;
      key += !escaped ? pointer[i] : pointer[++i] == '1' ? '/' : '~';
    }
    pointer.remove_prefix(end);
    node = child(ref, node, key, path, known);
    path += fmt::format("{}:{}", key.size(), key);
  }
  return node;
}

}  // namespace stagecraft
