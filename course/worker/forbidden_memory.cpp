#include "course/worker/forbidden_memory.h"

#include <sys/mman.h>

// Defined by the sanitizer's library, if the program is linked with it.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void*,
                                                       std::size_t);  // NOLINT
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void*,
                                                         std::size_t);  // NOLINT
}

namespace stagecraft::stages {

bool has_sanitizer() { return __asan_poison_memory_region != nullptr; }

void forbid(const void* begin, std::size_t bytes) {
  if (has_sanitizer()) __asan_poison_memory_region(begin, bytes);
}

void allow(const void* begin, std::size_t bytes) {
  if (has_sanitizer()) __asan_unpoison_memory_region(begin, bytes);
}

void forbid_writing(void* begin, std::size_t bytes) { ::mprotect(begin, bytes, PROT_READ); }

void allow_writing(void* begin, std::size_t bytes) {
  ::mprotect(begin, bytes, PROT_READ | PROT_WRITE);
}

void* forbidden_page() {
  static void* const page = ::mmap(nullptr, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;  // MAP_FAILED cannot be read either
}

void* before_forbidden_page(std::size_t bytes) {
  static void* const pages = [] {
    void* const begin =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::mprotect(static_cast<std::byte*>(begin) + kPage, kPage, PROT_NONE);
    return begin;
  }();
  return static_cast<std::byte*>(pages) + kPage - bytes;
}

}  // namespace stagecraft::stages
