#include "base/json_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace stagecraft {
namespace {

nlohmann::json scalar(JsonNode node) {
  if (node.is_boolean()) return node.boolean();
  if (node.is_integer()) return node.integer();
  if (node.is_whole()) return node.whole();
  if (node.is_number()) return node.number();
  if (node.is_string()) return std::string(node.string());
  return nullptr;
}

}  // namespace

std::string json_text(const nlohmann::json& value, int indent) {
  return value.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string json_text(JsonNode node) {
  if (!node.is_object() && !node.is_array()) return json_text(scalar(node));
  std::string text;
  const auto add = [&](const std::string& one) { text += (text.empty() ? "" : ",") + one; };
  if (node.is_array()) {
    for (const JsonNode element : node.elements()) add(json_text(element));
    return "[" + text + "]";
  }
  for (const JsonNode member : node.members()) {
    add(json_quoted(member.key()) + ":" + json_text(member));
  }
  return "{" + text + "}";
}

std::string json_quoted(std::string_view text) { return json_text(nlohmann::json(text)); }

double shortest_decimal(float value) { return std::stod(fmt::format("{}", value)); }

nlohmann::json json_value(std::string_view text) { return nlohmann::json::parse(text); }

}  // namespace stagecraft
