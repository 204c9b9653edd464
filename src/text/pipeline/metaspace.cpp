#include "text/pipeline/metaspace.h"

#include "text/unicode.h"

namespace stagecraft {
namespace {

MetaspaceOptions::Prepend read_scheme(const JsonNode& node) {
  const std::string_view name = node.string();
  if (name == "first") return MetaspaceOptions::Prepend::kFirst;
  if (name == "never") return MetaspaceOptions::Prepend::kNever;
  if (name == "always") return MetaspaceOptions::Prepend::kAlways;
  node.refuse("'first', 'never' or 'always'");
}

}  // namespace

void append_marked(std::string& out, std::string_view text, std::string_view mark) {
  for (const char c : text) {
    if (c == ' ') {
      out += mark;
    } else {
      out += c;
    }
  }
}

MetaspaceOptions MetaspaceOptions::read(const JsonNode& node) {
  MetaspaceOptions options;
  const JsonNode replacement = node.at("replacement");
  options.replacement = replacement.string();
  if (!is_one_character(options.replacement)) replacement.refuse("one character");
  if (const auto scheme = node.find("prepend_scheme")) options.prepend = read_scheme(*scheme);
  if (const auto prefix = node.find("add_prefix_space"); prefix && !prefix->boolean()) {
    if (node.find("prepend_scheme") && options.prepend != Prepend::kNever) {
      prefix->refuse("true (prepend_scheme is not 'never')");
    }
    options.prepend = Prepend::kNever;
  }
  options.split = node.boolean_or("split", true);
  return options;
}

}  // namespace stagecraft
