// What the rows of several tables of hostile files have in common.
#pragma once

#include <functional>
#include <string>

namespace stagecraft {

// Names the test of a row.
inline constexpr auto row_name = [](const auto& test) { return test.param.name; };

// The contents of a file. A long text is generated only when it is needed, because each test is a
// process of its own and creates all rows.
struct Contents : std::function<std::string()> {
  using function::function;
  Contents(std::string text) : function([=] { return text; }) {}
  Contents(const char* text) : Contents(std::string(text)) {}
};

}  // namespace stagecraft
