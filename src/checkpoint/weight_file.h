#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
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
  // The file's own name for a tensor, for errors; the tensor need not be there.
  virtual std::string stored_name(const std::string& name) const { return name; }

  // Bytes of memory for tensors that had to be copied into another order or format.
  std::size_t copied_bytes() const;
  bool is_copy(const StoredTensor& tensor) const { return copies_.contains(tensor.bytes.data()); }
  // Gives back the memory of a tensor that is a copy: its bytes may not be read again. Does nothing
  // to one that lies in the file. Threads may drop different tensors at once.
  void drop_copy(const StoredTensor& tensor) const;

 protected:
  // Owns the bytes of a tensor that do not lie in the file so.
  std::span<const std::byte> keep(std::vector<std::byte> copy);

 private:
  // By where they begin. Dropped ones are empty.
  mutable std::map<const std::byte*, std::vector<std::byte>> copies_;
};

}  // namespace stagecraft
