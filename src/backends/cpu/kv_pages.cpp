#include "backends/cpu/kv_pages.h"

namespace stagecraft {

KvPages::KvPages(std::size_t n_pages, std::size_t page_bytes) : memory_(n_pages, page_bytes) {
  free_.reserve(n_pages);  // giving a page back never allocates
  for (std::size_t i = n_pages; i-- > 0;) free_.push_back(memory_.data() + i * page_bytes);
}

KvPages::Page KvPages::take() {
  if (free_.empty()) return nullptr;
  std::byte* const page = free_.back();
  free_.pop_back();
  return {page, [pages = shared_from_this()](std::byte* back) { pages->free_.push_back(back); }};
}

}  // namespace stagecraft
