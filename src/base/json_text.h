#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"

namespace stagecraft {

// Writes JSON as text. This is a file of its own because nlohmann's writer and parser take seconds
// to compile in each file that includes them.

// On one line if `indent` is negative, else with `indent` blanks per level. Bytes that are not
// valid UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
// Without blanks; members keep their order.
std::string json_text(JsonNode node);
// A string in quotes, with escapes.
std::string json_quoted(std::string_view text);

// The double whose shortest text is that of this float: 0.8, not 0.800000011920929.
double shortest_decimal(float value);

// The members of a JSON object, each value written as json_text(JsonNode) writes it. nullopt: the
// text is no JSON object. Models write such objects, so this is less strict than Json: of a key
// that is given twice, at any level, the last value counts, and nothing limits the number of
// levels.
std::optional<std::map<std::string, std::string>> json_members(std::string_view text);

// Parses a text that Json (base/json.h) has read without an error.
nlohmann::json json_value(std::string_view text);

}  // namespace stagecraft
