#include "serve/page.h"

#include <algorithm>
#include <iterator>

namespace stagecraft {
namespace {

constexpr PageFile kFiles[] = {
#include "page_files.inc"  // src/CMakeLists.txt writes it from the files in src/serve/page
};

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  const auto file = std::ranges::find(kFiles, path, &PageFile::path);
  return file == std::end(kFiles) ? nullptr : file;
}

}  // namespace stagecraft
