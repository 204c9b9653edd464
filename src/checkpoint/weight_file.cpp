#include "checkpoint/weight_file.h"

#include <utility>

namespace stagecraft {

std::size_t WeightFile::copied_bytes() const {
  std::size_t total = 0;
  for (const auto& [begin, copy] : copies_) total += copy.size();
  return total;
}

void WeightFile::drop_copy(const StoredTensor& tensor) const {
  const auto found = copies_.find(tensor.bytes.data());
  if (found != copies_.end()) std::vector<std::byte>().swap(found->second);
}

std::span<const std::byte> WeightFile::keep(std::vector<std::byte> copy) {
  const std::byte* begin = copy.data();
  // A copy that was dropped may have had the same address.
  return copies_.insert_or_assign(begin, std::move(copy)).first->second;
}

}  // namespace stagecraft
