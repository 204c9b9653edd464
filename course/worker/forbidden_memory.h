#pragma once

#include <cstddef>

namespace stagecraft::stages {

// Memory that a student's code must not access. In a worker with AddressSanitizer, an access stops
// the program and reports the line. Without it these functions do nothing, and wrong writes are
// found after the call.
bool has_sanitizer();
void forbid(const void* begin, std::size_t bytes);
void allow(const void* begin, std::size_t bytes);

// The same for writes only, and for whole pages.
inline constexpr std::size_t kPage = 65536;  // a multiple of the page size of every processor
void forbid_writing(void* begin, std::size_t bytes);
void allow_writing(void* begin, std::size_t bytes);

// A page that cannot be read or written, with or without a sanitizer.
void* forbidden_page();
// Memory that ends where such a page begins: at most kPage bytes, the same for all calls.
void* before_forbidden_page(std::size_t bytes);

}  // namespace stagecraft::stages
