#include "text/pipeline/pattern.h"

#include "text/unicode.h"

namespace stagecraft {

Pattern Pattern::read(const JsonNode& node) {
  const auto literal = node.find("String");
  const auto regex = node.find("Regex");
  if (literal.has_value() == regex.has_value()) {
    node.refuse("either a field 'String' or a field 'Regex'", literal ? "both" : "none");
  }
  if (regex) return Pattern(Regex(regex->string(), regex->where()));
  // An empty pattern matches between all characters; Regex implements that.
  if (literal->string().empty()) return Pattern(Regex("", literal->where()));
  return Pattern(std::string(literal->string()));
}

void Pattern::find_all(std::string_view text, std::vector<Match>& matches) const {
  if (const auto* regex = std::get_if<Regex>(&what_)) return regex->find_all(text, matches);
  const std::string& wanted = std::get<std::string>(what_);
  std::size_t covered = 0;
  for (;;) {
    const std::size_t found = text.find(wanted, covered);
    if (found == std::string_view::npos) break;
    if (found != covered) matches.push_back({covered, found, false});
    covered = found + wanted.size();
    matches.push_back({found, covered, true});
  }
  if (covered != text.size()) matches.push_back({covered, text.size(), false});
}

void find_characters(std::string_view text, const std::function<bool(char32_t)>& predicate,
                     std::vector<Match>& matches) {
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = first_code_point(text.substr(at));
    if (predicate(c.value)) {
      if (covered != at) matches.push_back({covered, at, false});
      covered = at + c.length;
      matches.push_back({at, covered, true});
    }
    at += c.length;
  }
  if (covered != text.size()) matches.push_back({covered, text.size(), false});
}

}  // namespace stagecraft
