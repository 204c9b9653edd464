#pragma once

#include <string_view>

namespace stagecraft {

// A file of the web page that the server offers to browsers. The files are in src/serve/page. The
// build copies them into the program, so the page needs no other file and no network.
struct PageFile {
  std::string_view path, content_type, content;
};

const PageFile* find_page_file(std::string_view path);  // null if the page has no such file

// Content-Security-Policy: the page may use its own files and send requests to this server. So text
// that a model or a person wrote could not run as a script, even if the page showed it as HTML.
inline constexpr std::string_view kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

}  // namespace stagecraft
