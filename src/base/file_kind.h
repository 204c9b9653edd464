#pragma once

#include <filesystem>
#include <string_view>

namespace stagecraft {

// The type of a file for an error message: "a regular file", "a folder", "a FIFO", "a device", ...
std::string_view file_kind(std::filesystem::file_type type);

// Whether a file of this name may exist. A dangling link, or a file in a folder that may not be
// read, counts as existing, so that the attempt to open it reports the cause.
bool is_there(const std::filesystem::path& path);

// Whether the file's name ends in `extension` (".gguf"), in capitals or not.
bool has_extension(const std::filesystem::path& path, std::string_view extension);

}  // namespace stagecraft
