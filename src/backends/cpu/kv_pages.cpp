#include "backends/cpu/kv_pages.h"

#include <new>

namespace stagecraft {

KvPages::KvPages(std::size_t n_pages, std::size_t page_bytes)
    : page_bytes_(page_bytes), n_holders_(n_pages) {
  if (page_bytes != 0 && n_pages > SIZE_MAX / page_bytes) throw std::bad_alloc();
  memory_ = LargeMemory(n_pages * page_bytes);
  free_.reserve(n_pages);  // giving a page back never allocates
  for (std::size_t i = n_pages; i-- > 0;) free_.push_back(i);
}

KvPages::Page KvPages::take() {
  if (free_.empty()) return {};
  const std::size_t index = free_.back();
  free_.pop_back();
  return {shared_from_this(), index};
}

KvPages::Page::Page(std::shared_ptr<KvPages> pages, std::size_t index)
    : pages_(std::move(pages)),
      index_(index),
      data_(pages_->memory_.data() + index * pages_->page_bytes()) {
  ++pages_->n_holders_[index];
}

KvPages::Page::Page(const Page& other)
    : pages_(other.pages_), index_(other.index_), data_(other.data_) {
  if (pages_) ++pages_->n_holders_[index_];
}

KvPages::Page& KvPages::Page::operator=(Page other) noexcept {
  pages_.swap(other.pages_);
  std::swap(index_, other.index_);
  std::swap(data_, other.data_);
  return *this;
}

KvPages::Page::~Page() {
  if (pages_ && --pages_->n_holders_[index_] == 0) pages_->free_.push_back(index_);
}

}  // namespace stagecraft
