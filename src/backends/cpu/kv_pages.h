#pragma once

#include <memory>
#include <vector>

#include "tensor/matrix.h"

namespace stagecraft {

// The memory of one cache of keys and values, or of several that share it: pages of one size. Each
// page goes back when nobody holds it any more. Pages that were never taken are never touched.
class KvPages : public std::enable_shared_from_this<KvPages> {
 public:
  // Several caches may hold a page, to read it; one that holds it alone may write it.
  using Page = std::shared_ptr<std::byte>;

  // Throws std::bad_alloc.
  KvPages(std::size_t n_pages, std::size_t page_bytes);

  std::size_t page_bytes() const { return memory_.cols(); }
  std::size_t n_free() const { return free_.size(); }
  // Null if none is left. What it holds is what its last holder left, or zeros.
  Page take();

 private:
  Matrix<std::byte> memory_;      // [n_pages, page_bytes]
  std::vector<std::byte*> free_;  // the next one last
};

}  // namespace stagecraft
