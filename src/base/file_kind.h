#pragma once

#include <filesystem>
#include <string_view>

namespace stagecraft {

// The type of a file for an error message: "a regular file", "a folder", "a FIFO", "a device", ...
std::string_view file_kind(std::filesystem::file_type type);

}  // namespace stagecraft
