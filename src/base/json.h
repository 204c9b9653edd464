#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace stagecraft {

// Reading JSON that a stranger wrote. Include this from .cpp files only.
using Json = nlohmann::json;

// Parses `text`; `where` names it in errors ("models/story/config.json"). Refuses what JSON leaves
// open and files use to lie: duplicate keys, and nesting deeper than 64.
Json parse_json(std::string_view text, const std::string& where);
// The same for a text that must be one object.
Json parse_json_object(std::string_view text, const std::string& where);

// "expected a string, found [1,2]", for errors: the kind and the beginning of a value.
std::string describe_json(const Json& value);

// A member of an object that may be missing; null counts as missing.
const Json* find_member(const Json& object, std::string_view key);

// A whole number in [min, max] (SIZE_MAX: as large as can be), or Error "where: 'key': expected
// ..., found ...". Floats that are whole numbers are refused too: no writer of such files makes
// them.
std::size_t json_size(const Json& value, const std::string& where, std::string_view key,
                      std::size_t min, std::size_t max);
double json_number(const Json& value, const std::string& where, std::string_view key, double min,
                   double max);
bool json_bool(const Json& value, const std::string& where, std::string_view key);
const std::string& json_string(const Json& value, const std::string& where, std::string_view key);

}  // namespace stagecraft
