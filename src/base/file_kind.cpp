#include "base/file_kind.h"

#include "base/ascii.h"

namespace stagecraft {

std::string_view file_kind(std::filesystem::file_type type) {
  switch (type) {
    case std::filesystem::file_type::regular:
      return "a regular file";
    case std::filesystem::file_type::directory:
      return "a folder";
    case std::filesystem::file_type::symlink:
      return "a link to nothing";
    case std::filesystem::file_type::fifo:
      return "a FIFO";
    case std::filesystem::file_type::socket:
      return "a socket";
    case std::filesystem::file_type::block:
    case std::filesystem::file_type::character:
      return "a device";
    default:
      return "something else";
  }
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::symlink_status(path, ignored).type() !=
         std::filesystem::file_type::not_found;
}

bool has_extension(const std::filesystem::path& path, std::string_view extension) {
  return ascii_lower(path.extension().string()) == extension;
}

}  // namespace stagecraft
