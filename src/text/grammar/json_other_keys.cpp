#include "text/grammar/json_other_keys.h"

#include <algorithm>
#include <map>

#include "text/grammar/grammar.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr std::string_view kNot = R"("\\\x00-\x1f\x7f)";  // inside [^]

struct Node {  // a beginning of a name
  std::map<char32_t, std::size_t> next;
  bool is_name = false;
};

bool has_escapes(std::string_view name) {
  return std::ranges::any_of(name, [](char c) {
    return c == '"' || c == '\\' || c == 0x7f || static_cast<unsigned char>(c) < 0x20;
  });
}

// Keys have no escapes, so a name cannot be spelt in another way.
std::vector<Node> trie_of(JsonNode schema, const std::set<std::string, std::less<>>& names) {
  std::vector<Node> nodes(1);
  for (const std::string& name : names) {
    if (has_escapes(name)) continue;
    std::size_t node = 0;
    for (std::string_view rest = name; !rest.empty();) {
      const CodePoint c = first_code_point(rest);
      rest.remove_prefix(c.length);
      const auto [next, is_new] = nodes[node].next.try_emplace(c.value, nodes.size());
      node = next->second;
      if (is_new) nodes.emplace_back();
      if (nodes.size() > Grammar::kMaxRepeats) {
        schema.at("properties")
            .refuse(fmt::format("names of at most {} characters in all", Grammar::kMaxRepeats),
                    "more");
      }
    }
    nodes[node].is_name = true;
  }
  return nodes;
}

}  // namespace

// A trie of the characters of `names`, left at a character that no name has there.
std::vector<GbnfRule> other_keys_gbnf(JsonNode schema,
                                      const std::set<std::string, std::less<>>& names,
                                      const std::function<std::string()>& new_name) {
  const std::vector<Node> nodes = trie_of(schema, names);
  std::vector<GbnfRule> rules;
  for (std::size_t i = 0; i < nodes.size(); ++i) rules.push_back({new_name(), ""});
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::string excluded, &body = rules[i].body;
    for (const auto& [c, next] : nodes[i].next) {
      const std::string escaped = fmt::format("\\U{:08x}", static_cast<unsigned>(c));
      excluded += escaped;
      body += fmt::format("[{}] {} | ", escaped, rules[next].name);
    }
    body += fmt::format("[^{}{}] [^{}]*", kNot, excluded, kNot);
    if (!nodes[i].is_name) body += " | \"\"";
  }
  return rules;
}

}  // namespace stagecraft
