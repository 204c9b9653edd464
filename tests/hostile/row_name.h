#pragma once

namespace stagecraft {

// Names the test of a row of a table.
inline constexpr auto row_name = [](const auto& test) { return test.param.name; };

}  // namespace stagecraft
