#include "formats/flm/config.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_text.h"

namespace stagecraft {
namespace {

// Replaces Python's words and quotes by those of JSON. The result is not valid JSON if a string
// contains quotes.
std::string as_json(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kWords = {
      {{"True", "true"}, {"False", "false"}, {"None", "null"}, {"'", "\""}}};
  std::string json;
  while (!text.empty()) {
    const auto* word = std::ranges::find_if(
        kWords, [&](const auto& pair) { return text.starts_with(pair.first); });
    const std::size_t length = word == kWords.end() ? 1 : word->first.size();
    json += word == kWords.end() ? text.substr(0, 1) : word->second;
    text.remove_prefix(length);
  }
  return json;
}

// A number, True, None, a list or a dict as JSON; anything else stays a string.
nlohmann::json value_of(const std::string& text) {
  const std::string json = as_json(text);
  try {
    const Json checked(json, "");
    return json_value(json);
  } catch (const Error&) {
    return text;
  }
}

}  // namespace

std::string flm_config_json(const FlmFile& file) {
  auto config = nlohmann::json::object();
  for (const auto& [key, text] : file.pairs()) {
    if (FlmFile::is_about_text(key)) continue;
    config[key] = value_of(text);
  }
  return json_text(config);
}

}  // namespace stagecraft
