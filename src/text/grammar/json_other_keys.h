#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"

namespace stagecraft {

struct GbnfRule {
  std::string name, body;
};

// Rules for the text inside the quotes of any key except `names`; the first rule is that of the
// whole text. Throws Error if the names, which are in the "properties" of `schema`, are too long.
std::vector<GbnfRule> other_keys_gbnf(JsonNode schema,
                                      const std::set<std::string, std::less<>>& names,
                                      const std::function<std::string()>& new_name);

}  // namespace stagecraft
