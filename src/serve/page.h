#pragma once

#include <string_view>

namespace stagecraft {

// A file of the page that the server shows in a browser. They stand in src/serve/page and are part
// of the program, so that it needs no other file and no network.
struct PageFile {
  std::string_view path, content_type, content;
};

const PageFile* find_page_file(std::string_view path);  // nullptr: the page has none there

// What the page may do: run and show its own files, and ask this server. Text that a model or a
// person wrote could therefore not run, even if the page showed it as HTML.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace stagecraft
