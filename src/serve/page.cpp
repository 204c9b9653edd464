#include "serve/page.h"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

// src/CMakeLists.txt writes each file as a string literal.
constexpr std::string_view kHtml =
#include "page/index.html.inc"
    ;
constexpr std::string_view kStyle =
#include "page/page.css.inc"
    ;
constexpr std::string_view kScript =
#include "page/page.js.inc"
    ;

constexpr std::array<PageFile, 3> kFiles = {{
    {"/", "text/html; charset=utf-8", kHtml},
    {"/page.css", "text/css; charset=utf-8", kStyle},
    {"/page.js", "text/javascript; charset=utf-8", kScript},
}};

}  // namespace

const PageFile* find_page_file(std::string_view path) {
  const auto file = std::ranges::find(kFiles, path, &PageFile::path);
  return file == kFiles.end() ? nullptr : file;
}

}  // namespace stagecraft
