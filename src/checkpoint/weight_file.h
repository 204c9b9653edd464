#pragma once

#include <vector>

#include "checkpoint/stored_tensor.h"

namespace stagecraft {

// One opened file with the weights of a model, or with some of them. Names, shapes and the order of
// rows are those of a Hugging Face checkpoint, whatever the file's own are. The tensors point into
// the file, which owns its bytes.
class WeightFile {
 public:
  virtual ~WeightFile() = default;
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  virtual void release_pages() const = 0;  // see MappedFile
  // Bytes of memory for tensors that had to be copied into another order or format.
  virtual std::size_t copied_bytes() const { return 0; }
};

}  // namespace stagecraft
