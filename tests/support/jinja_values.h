#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "text/jinja/template.h"

namespace stagecraft {

// Converts JSON to a value of a template. Objects keep the order of the file. Strings are frame,
// not typed text.
inline jinja::Value jinja_value(jinja::Runtime& runtime, const nlohmann::ordered_json& json) {
  using jinja::Value;
  if (json.is_boolean()) return Value::of_bool(json.get<bool>());
  if (json.is_number_integer()) return Value::of_integer(json.get<std::int64_t>());
  if (json.is_number()) return Value::of_number(json.get<double>());
  if (json.is_string()) return runtime.text(MarkedText(json.get<std::string>()));
  if (json.is_array()) {
    jinja::Values values;
    for (const auto& element : json) values.push_back(jinja_value(runtime, element));
    return runtime.list(std::move(values));
  }
  if (!json.is_object()) return Value::none();
  jinja::Dict dict;
  for (const auto& [key, value] : json.items()) {
    dict.items.emplace_back(runtime.text(MarkedText(key)), jinja_value(runtime, value));
  }
  return runtime.dict(std::move(dict));
}

// The members of an object as the variables of a template.
inline jinja::Template::Variables jinja_variables(const nlohmann::ordered_json& json) {
  return [json](jinja::Runtime& runtime) {
    std::vector<std::pair<std::string, jinja::Value>> variables;
    for (const auto& [name, value] : json.items()) {
      variables.emplace_back(name, jinja_value(runtime, value));
    }
    return variables;
  };
}

// The time that reference/make_jinja.py uses when it renders: Friday, the 26th of July 2024.
inline std::tm day_of_the_reference() {
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_wday = 5;
  now.tm_yday = 207;
  now.tm_hour = 9;
  now.tm_min = 5;
  now.tm_sec = 3;
  return now;
}

}  // namespace stagecraft
