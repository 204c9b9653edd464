#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/json.h"

namespace stagecraft {

// JSON as text. The functions with nlohmann's values stand here because its writer and its parser
// take seconds to compile in each file that uses them.

// On one line, or with so many blanks per level. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& value, int indent = -1);
// As short as can be, members in their order.
std::string json_text(JsonNode node);
// A string between its quotes.
std::string json_quoted(std::string_view text);

// The value of a text that Json (base/json.h) has read without an error.
nlohmann::json json_value(std::string_view text);

}  // namespace stagecraft
