#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/large_memory.h"

namespace stagecraft {

// The memory of one cache of keys and values, or of several that share it: pages of one size. A
// page is free again when no Page refers to it. Pages that were never taken are never touched.
// Nothing is allocated after the constructor.
class KvPages : public std::enable_shared_from_this<KvPages> {
 public:
  class Page;

  // Throws std::bad_alloc.
  KvPages(std::size_t n_pages, std::size_t page_bytes);

  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t n_free() const { return free_.size(); }
  // Takes a free page; returns an empty Page if there is none. The page has the contents of its
  // last use, or zeros.
  Page take();

 private:
  LargeMemory memory_;  // [n_pages, page_bytes]
  std::size_t page_bytes_;
  std::vector<std::size_t> free_;         // the last one is taken next
  std::vector<std::uint32_t> n_holders_;  // per page
};

// A shared reference to a page, which is kept as long as one exists. All holders may read the page;
// a sole holder may write it. Only one thread at a time may copy, move or destroy references to
// pages of the same memory.
class KvPages::Page {
 public:
  Page() = default;  // holds nothing
  Page(const Page& other);
  Page(Page&& other) = default;
  Page& operator=(Page other) noexcept;
  ~Page();

  explicit operator bool() const { return pages_ != nullptr; }
  std::byte* data() const { return data_; }
  bool is_shared() const { return pages_->n_holders_[index_] > 1; }

 private:
  friend class KvPages;
  Page(std::shared_ptr<KvPages> pages, std::size_t index);

  std::shared_ptr<KvPages> pages_;  // empty after a move
  std::size_t index_ = 0;
  std::byte* data_ = nullptr;
};

}  // namespace stagecraft
