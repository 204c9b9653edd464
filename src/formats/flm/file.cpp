#include "formats/flm/file.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/file_kind.h"
#include "base/utf8.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxFlmNameBytes = 1024;
constexpr std::size_t kMaxFlmDimensions = 4;

// Keys with which other writers announce parts of the file that this reader does not know.
constexpr std::array<std::string_view, 3> kOtherLayouts = {
    "tokenizer_use_score", "tokenizer_has_special_tokens", "peft_size"};

std::size_t read_size(ByteReader& reader, const std::string& what, std::size_t min,
                      std::size_t max) {
  const auto value = static_cast<std::int32_t>(reader.number<std::uint32_t>(what));
  if (value < 0 || static_cast<std::size_t>(value) < min || static_cast<std::size_t>(value) > max) {
    throw Error("{}: {}: expected a whole number from {} to {}, found {}", reader.file(), what, min,
                max, value);
  }
  return static_cast<std::size_t>(value);
}

constexpr std::size_t kMaxInt = 0x7fffffff;

std::size_t read_count(ByteReader& reader, const std::string& what) {
  return read_size(reader, what, 0, kMaxInt);
}

// A length and that many bytes, in UTF-8.
std::string_view read_text(ByteReader& reader, const std::string& what) {
  const auto bytes = reader.take(read_count(reader, what), what);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (utf8_error_offset(text) != std::string_view::npos) {
    throw Error("{}: {}: expected UTF-8, found '{}'", reader.file(), what, printable(text, 40));
  }
  return text;
}

DType read_type(ByteReader& reader, const std::string& what) {
  const std::size_t type = read_count(reader, what);
  if (type == FlmFile::kF32) return DType::F32;
  if (type == FlmFile::kF16) return DType::F16;
  throw Error("{}: {}: type {} is not supported (only 0, f32, and 7, f16)", reader.file(), what,
              type);
}

StoredTensor read_tensor(ByteReader& reader, std::size_t index) {
  StoredTensor tensor;
  tensor.name = read_text(reader, fmt::format("tensor {}", index));
  if (tensor.name.empty() || tensor.name.size() > kMaxFlmNameBytes) {
    throw Error("{}: tensor {}: expected a name of 1 to {} bytes, found {}", reader.file(), index,
                kMaxFlmNameBytes, tensor.name.size());
  }
  const std::string what = fmt::format("tensor '{}'", printable(tensor.name));
  const std::size_t n_dimensions = read_size(reader, what + ": dimensions", 1, kMaxFlmDimensions);
  for (std::size_t i = 0; i < n_dimensions; ++i) {
    tensor.shape.push_back(read_size(reader, what + ": size", 1, kMaxInt));
  }
  tensor.dtype = read_type(reader, what);
  const std::string where = fmt::format("{}: {}", reader.file(), what);
  tensor.bytes = reader.take(byte_size(tensor.dtype, tensor.shape, where), what);
  return tensor;
}

}  // namespace

FlmFile::FlmFile(const std::filesystem::path& path) : name_(path.string()), file_(path) {
  const std::span<const std::byte> bytes = file_.bytes();
  refuse_lfs_pointer({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, name_);
  ByteReader reader(bytes, name_);
  const auto version = reader.number<std::uint32_t>("version");
  if (version != kVersion) {
    throw Error("{}: version: expected {}, found {}", name_, kVersion, version);
  }
  read_pairs(reader);
  read_vocabulary(reader);
  read_tensors(reader);
  if (reader.position() != bytes.size()) {
    throw Error("{}: expected {} bytes, as its weights need, found {}", name_, reader.position(),
                bytes.size());
  }
}

void FlmFile::read_pairs(ByteReader& reader) {
  const std::size_t count = read_count(reader, "number of pairs");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string key(read_text(reader, fmt::format("key {}", i)));
    const std::string what = fmt::format("'{}'", printable(key));
    if (!pairs_.emplace(key, read_text(reader, what)).second) {
      throw Error("{}: {} is given twice", name_, what);
    }
  }
  for (const std::string_view key : kOtherLayouts) {
    if (value(key).empty() || value(key) == "0") continue;
    throw Error("{}: '{}': expected 0, found '{}' (the data that it adds is not supported)", name_,
                key, printable(value(key)));
  }
}

void FlmFile::read_vocabulary(ByteReader& reader) {
  const std::size_t count = read_count(reader, "number of tokens");
  for (std::size_t i = 0; i < count; ++i) {
    const std::string what = fmt::format("token {}", i);
    FlmToken token;
    // The text grows byte by byte, because the length has not been checked against the file.
    for (std::size_t left = read_count(reader, what); left > 0; --left) {
      token.text += static_cast<char>(read_size(reader, what + ": byte", 0, 255));
    }
    token.id = read_count(reader, what + ": id");
    vocabulary_.push_back(std::move(token));
  }
}

void FlmFile::read_tensors(ByteReader& reader) {
  const std::size_t count = read_count(reader, "number of tensors");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < count; ++i) tensors_.push_back(read_tensor(reader, i));
  for (const StoredTensor& tensor : tensors_) {
    if (names.insert(tensor.name).second) continue;
    throw Error("{}: tensor '{}' is given twice", name_, printable(tensor.name));
  }
}

std::string_view FlmFile::value(std::string_view key) const {
  const auto found = pairs_.find(key);
  return found == pairs_.end() ? std::string_view() : found->second;
}

bool FlmFile::is_about_text(std::string_view key) {
  return std::ranges::find(kChatKeys, key) != kChatKeys.end() || key == "add_bos_token" ||
         key.starts_with("tokenizer_");
}

bool is_flm(const std::filesystem::path& path) {
  std::error_code ignored;
  return has_extension(path, ".flm") && !std::filesystem::is_directory(path, ignored);
}

}  // namespace stagecraft
