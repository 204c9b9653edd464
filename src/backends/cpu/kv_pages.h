#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/large_memory.h"

namespace stagecraft {

// The memory of one cache of keys and values, or of several that share it: pages of one size. Each
// page goes back when nobody holds it any more. Pages that were never taken are never touched, and
// none of this allocates after the constructor.
class KvPages : public std::enable_shared_from_this<KvPages> {
 public:
  class Page;

  // Throws std::bad_alloc.
  KvPages(std::size_t n_pages, std::size_t page_bytes);

  std::size_t page_bytes() const { return page_bytes_; }
  std::size_t n_free() const { return free_.size(); }
  // An empty one if none is left. What it holds is what its last holder left, or zeros.
  Page take();

 private:
  LargeMemory memory_;  // [n_pages, page_bytes]
  std::size_t page_bytes_;
  std::vector<std::size_t> free_;         // the next one last
  std::vector<std::uint32_t> n_holders_;  // per page
};

// Holds a page; copies hold it, too. Several may read it; one that holds it alone may write it. One
// thread at a time copies, moves or destroys pages of the same memory.
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
