#include "text/pipeline/precompiled.h"

#include "base/base64.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

Charsmap read_charsmap(const JsonNode& node) {
  const auto blob = bytes_of_base64(node.string());
  if (!blob) node.refuse("base64", "something else");
  return Charsmap(*blob, node.where());
}

}  // namespace

Precompiled::Precompiled(const JsonNode& node)
    : charsmap_(read_charsmap(node.at("precompiled_charsmap"))) {}

void Precompiled::apply(std::string& text, bool&, const GrowthLimit& limit) const {
  constexpr std::size_t kMaxCluster = 6;
  std::string out;
  out.reserve(text.size());
  for (std::string_view rest = text; !rest.empty();) {
    limit.check("normalizer Precompiled", out.size());
    std::string_view cluster = rest.substr(0, grapheme_length(rest));
    rest.remove_prefix(cluster.size());
    if (cluster.size() < kMaxCluster) {
      if (const auto rule = charsmap_.shortest(cluster)) {
        out += rule->text;
        continue;
      }
    }
    while (!cluster.empty()) {
      const std::string_view character = cluster.substr(0, first_code_point(cluster).length);
      const auto rule = charsmap_.shortest(character);
      out += rule ? rule->text : character;
      cluster.remove_prefix(character.size());
    }
  }
  limit.check("normalizer Precompiled", out.size());
  text = std::move(out);
}

}  // namespace stagecraft
