#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <span>
#include <string>

#include "tensor/stored_tensor.h"

namespace stagecraft {

// The length and the header of a file with these tensors, in this order. The tensors' bytes are not
// read, so they need not exist yet. sizes: the number of bytes of each tensor.
std::string safetensors_header(std::span<const StoredTensor> tensors,
                               std::span<const std::size_t> sizes,
                               const std::map<std::string, std::string>& metadata);

// Writes tensors and metadata as a safetensors file, in the order given. Throws Error naming the
// path if it cannot be written; a half-written file is not left behind. check: called before each
// tensor; it may throw to stop.
void write_safetensors(
    const std::filesystem::path& path, std::span<const StoredTensor> tensors,
    const std::map<std::string, std::string>& metadata, const std::function<void()>& check = [] {});

// For course/worker: writes the same to a stream. If that fails, only the state of the stream shows
// it.
void write_safetensors(std::ostream& out, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace stagecraft
