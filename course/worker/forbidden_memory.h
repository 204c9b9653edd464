#pragma once

#include <cstddef>

namespace stagecraft::stages {

// Memory that a student's code must not touch. In a worker that is built with AddressSanitizer an
// access to it ends the program with the line; elsewhere these do nothing, and what was written is
// seen after the call.
bool has_sanitizer();
void forbid(const void* begin, std::size_t bytes);
void allow(const void* begin, std::size_t bytes);

// The same for writing alone, to whole pages.
inline constexpr std::size_t kPage = 65536;  // a multiple of every processor's
void forbid_writing(void* begin, std::size_t bytes);
void allow_writing(void* begin, std::size_t bytes);

// A page that a program may not even read, sanitizer or not.
void* forbidden_page();

}  // namespace stagecraft::stages
