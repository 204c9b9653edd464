#pragma once

#include <string>

namespace stagecraft {

// Version, commit, compiler and instruction set: what `stagecraft --version` prints.
std::string version_text();

}  // namespace stagecraft
