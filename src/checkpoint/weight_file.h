#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tensor/stored_tensor.h"

namespace stagecraft {

// One open file with all weights of a model, or with some of them. Names, shapes and the order of
// rows are those of a Hugging Face checkpoint, even if the file itself uses others. The tensors
// point into memory that this object owns: the mapped file, or copies.
class WeightFile {
 public:
  virtual ~WeightFile() = default;
  virtual const std::vector<StoredTensor>& tensors() const = 0;
  virtual void release_pages() const = 0;  // see MappedFile
  // The name that the file itself uses for a tensor, for errors. The tensor need not exist.
  virtual std::string stored_name(const std::string& name) const { return name; }

  // Bytes of memory for tensors that had to be copied into another order or format.
  std::size_t copied_bytes() const;
  bool is_copy(const StoredTensor& tensor) const { return copies_.contains(tensor.bytes.data()); }
  // Frees the memory of a tensor that is a copy; its bytes must not be read afterwards. Does
  // nothing if the tensor lies in the file. Several threads may drop different tensors at the same
  // time.
  void drop_copy(const StoredTensor& tensor) const;

 protected:
  // Takes ownership of a tensor's bytes that differ from those in the file. Returns a view of them.
  std::span<const std::byte> keep(std::vector<std::byte> copy);

 private:
  // The key is the address of the first byte. A dropped copy is an empty vector.
  mutable std::map<const std::byte*, std::vector<std::byte>> copies_;
};

}  // namespace stagecraft
