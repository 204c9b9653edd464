#include "checkpoint/safetensors.h"

#include <algorithm>

#include "base/json.h"
#include "checkpoint/byte_reader.h"

namespace stagecraft {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kMaxHeaderBytes = 16u << 20;  // over 100,000 tensors
constexpr std::size_t kMaxSafetensorsDimensions = 8;

// The names of an object's members, such as "'dtype', 'size'", for errors.
std::string member_names(JsonNode object) {
  std::string names;
  for (const JsonNode value : object.members()) {
    names += fmt::format("{}'{}'{}", names.empty() ? "" : ", ", printable(value.key(), 40),
                         value.is_null() ? " null" : "");
  }
  return names.empty() ? "none" : printable(names, 160);
}

StoredTensor parse_tensor(JsonNode entry, std::span<const std::byte> data,
                          const std::string& where) {
  if (!entry.is_object()) {
    throw Error("{}: expected an object, found {}", where, entry.describe());
  }
  const auto dtype = entry.find("dtype"), shape = entry.find("shape");
  const auto offsets = entry.find("data_offsets");
  if (!dtype || !shape || !offsets || entry.size() != 3) {
    throw Error("{}: expected exactly 'dtype', 'shape' and 'data_offsets', found {}", where,
                member_names(entry));
  }

  StoredTensor tensor;
  tensor.name = entry.key();
  const std::string dtype_text = json_string(*dtype, where, "dtype");
  const auto known = dtype_from_name(dtype_text);
  if (!known) throw Error("{}: 'dtype': '{}' is not supported", where, printable(dtype_text));
  tensor.dtype = *known;

  if (!shape->is_array() || shape->size() > kMaxSafetensorsDimensions) {
    throw Error("{}: 'shape': expected an array of at most {} sizes, found {}", where,
                kMaxSafetensorsDimensions, shape->describe());
  }
  for (const JsonNode size : shape->elements()) {
    tensor.shape.push_back(json_size(size, where, "shape", 0, SIZE_MAX));
  }

  if (!offsets->is_array() || offsets->size() != 2) {
    throw Error("{}: 'data_offsets': expected [begin, end], found {}", where, offsets->describe());
  }
  auto place = offsets->elements().begin();
  const std::size_t begin = json_size(*place, where, "data_offsets", 0, SIZE_MAX);
  const std::size_t end = json_size(*++place, where, "data_offsets", 0, SIZE_MAX);
  if (begin > end || end > data.size()) {
    throw Error("{}: 'data_offsets': expected a range within the {} bytes of data, found [{}, {}]",
                where, data.size(), begin, end);
  }
  const std::size_t expected = byte_size(tensor.dtype, tensor.shape, where + ": 'shape'");
  if (end - begin != expected) {
    throw Error("{}: {} {} takes {} bytes, 'data_offsets' give {}", where, dtype_text,
                shape_text(tensor.shape), expected, end - begin);
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

// Sorts the tensors by position and checks that they cover the data exactly: no hole, no overlap,
// no bytes at the end.
void check_tiling(std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                  const std::string& file) {
  const auto place = [](const StoredTensor& t) {
    return std::pair(t.bytes.data(), t.bytes.data() + t.bytes.size());
  };
  std::stable_sort(tensors.begin(), tensors.end(),
                   [&](const auto& a, const auto& b) { return place(a) < place(b); });
  std::size_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    const auto begin = static_cast<std::size_t>(tensor.bytes.data() - data.data());
    if (begin != at) {
      throw Error("{}: tensor '{}': expected to begin at byte {} of the data, found {} ({})", file,
                  printable(tensor.name), at, begin, begin < at ? "an overlap" : "a hole");
    }
    at = begin + tensor.bytes.size();
  }
  if (at != data.size()) {
    throw Error("{}: expected {} bytes of data, as the tensors need, found {}", file, at,
                data.size());
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : file_(path) {
  const std::string file = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  if (bytes.size() < kLengthBytes) {
    throw Error("{}: expected a safetensors file, found a file of {} bytes", file, bytes.size());
  }
  refuse_lfs_pointer({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  const std::uint64_t header_size = ByteReader::little_endian<std::uint64_t>(bytes);
  if (header_size > bytes.size() - kLengthBytes || header_size > kMaxHeaderBytes) {
    throw Error(
        "{}: header length: expected at most {} bytes, found {}: the file is cut short, or not a "
        "safetensors file",
        file, std::min(bytes.size() - kLengthBytes, kMaxHeaderBytes), header_size);
  }
  const std::string_view header(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes,
                                static_cast<std::size_t>(header_size));
  const std::span<const std::byte> data =
      bytes.subspan(kLengthBytes + static_cast<std::size_t>(header_size));

  const Json json = parse_json_object(header, file + ": header");
  tensors_.reserve(json.root().size());
  for (const JsonNode entry : json.root().members()) {
    if (entry.key() != "__metadata__") {
      const std::string where = fmt::format("{}: tensor '{}'", file, printable(entry.key()));
      tensors_.push_back(parse_tensor(entry, data, where));
      continue;
    }
    if (!entry.is_object()) {
      throw Error("{}: '__metadata__': expected an object, found {}", file, entry.describe());
    }
    for (const JsonNode value : entry.members()) {
      metadata_[std::string(value.key())] =
          json_string(value, file + ": __metadata__", value.key());
    }
  }
  check_tiling(tensors_, data, file);
  for (std::size_t i = 0; i < tensors_.size(); ++i) places_.emplace(tensors_[i].name, i);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace stagecraft
