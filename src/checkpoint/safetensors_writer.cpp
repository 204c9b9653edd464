#include "checkpoint/safetensors_writer.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "base/atomic_file.h"
#include "base/json_text.h"
#include "checkpoint/put_number.h"

namespace stagecraft {
namespace {

std::vector<std::size_t> sizes_of(std::span<const StoredTensor> tensors) {
  std::vector<std::size_t> sizes;
  for (const StoredTensor& tensor : tensors) sizes.push_back(tensor.bytes.size());
  return sizes;
}

}  // namespace

std::string safetensors_header(std::span<const StoredTensor> tensors,
                               std::span<const std::size_t> sizes,
                               const std::map<std::string, std::string>& metadata) {
  auto header = nlohmann::json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::size_t at = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    header[tensors[i].name] = {{"dtype", dtype_name(tensors[i].dtype)},
                               {"shape", tensors[i].shape},
                               {"data_offsets", {at, at + sizes[i]}}};
    at += sizes[i];
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins 8-byte aligned
  std::string length;
  put_number<std::uint64_t>(length, text.size());
  return length + text;
}

void write_safetensors(std::ostream& out, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string header = safetensors_header(tensors, sizes_of(tensors), metadata);
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  for (const StoredTensor& tensor : tensors) {
    out.write(reinterpret_cast<const char*>(tensor.bytes.data()),
              static_cast<std::streamsize>(tensor.bytes.size()));
  }
}

void write_safetensors(const std::filesystem::path& path, std::span<const StoredTensor> tensors,
                       const std::map<std::string, std::string>& metadata,
                       const std::function<void()>& check) {
  AtomicFile file(path, true);
  file.write(safetensors_header(tensors, sizes_of(tensors), metadata));
  for (const StoredTensor& tensor : tensors) {
    check();
    file.write(tensor.bytes);
  }
  file.commit();
}

}  // namespace stagecraft
