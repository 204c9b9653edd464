#include "formats/gguf/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>

#include "base/file_kind.h"
#include "base/round_up.h"
#include "base/utf8.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxGgufNameBytes = 1024;
constexpr std::uint32_t kMaxGgufDimensions = 4;
constexpr std::size_t kDefaultAlignment = 32;
constexpr std::size_t kMaxAlignment = 1u << 20;

// ggml's numbers for the types that we read.
constexpr std::array<std::pair<std::uint32_t, DType>, 22> kTypes = {{
    {0, DType::F32},   {1, DType::F16},     {2, DType::Q4_0},    {3, DType::Q4_1},
    {6, DType::Q5_0},  {7, DType::Q5_1},    {8, DType::Q8_0},    {10, DType::Q2_K},
    {11, DType::Q3_K}, {12, DType::Q4_K},   {13, DType::Q5_K},   {14, DType::Q6_K},
    {15, DType::Q8_K}, {20, DType::IQ4_NL}, {23, DType::IQ4_XS}, {24, DType::I8},
    {25, DType::I16},  {26, DType::I32},    {27, DType::I64},    {28, DType::F64},
    {30, DType::BF16}, {39, DType::MXFP4},
}};

// Types that occur in published files and that we do not read: the error names them.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 9> kOtherTypes = {{
    {16, "IQ2_XXS"},
    {17, "IQ2_XS"},
    {18, "IQ3_XXS"},
    {19, "IQ1_S"},
    {21, "IQ3_S"},
    {22, "IQ2_S"},
    {29, "IQ1_M"},
    {34, "TQ1_0"},
    {35, "TQ2_0"},
}};

std::string types_text() {
  std::vector<std::string_view> names;
  for (const auto& [number, dtype] : kTypes) {
    if (is_quantized(dtype)) names.push_back(dtype_name(dtype));
  }
  return fmt::format("only {}", fmt::join(names, ", "));
}

DType dtype_of(std::uint32_t type, const std::string& where) {
  for (const auto& [number, dtype] : kTypes) {
    if (number == type) return dtype;
  }
  for (const auto& [number, name] : kOtherTypes) {
    if (number == type) throw Error("{}: {} is not supported ({})", where, name, types_text());
  }
  throw Error("{}: type {} is not supported", where, type);
}

// Throws Error if the version is not supported. It also shows the byte order: the low bytes of a
// small big-endian number, read as little-endian, are 0.
void check_version(ByteReader& reader) {
  const auto version = reader.number<std::uint32_t>("version");
  if (version == 2 || version == 3) return;
  if ((version & 0xffffu) == 0 && version != 0) {
    throw Error("{}: version: expected 2 or 3, found {}: a big-endian file", reader.file(),
                version);
  }
  throw Error("{}: version: expected 2 or 3, found {}", reader.file(), version);
}

// A tensor's entry in the header. place() sets tensor.bytes later.
struct Entry {
  StoredTensor tensor;
  std::uint64_t offset = 0;
  std::size_t size = 0;  // in bytes
};

Entry read_entry(ByteReader& reader, std::uint64_t index) {
  const std::string number = fmt::format("tensor {}", index);
  const std::string_view name = reader.text(number);
  if (name.empty() || name.size() > kMaxGgufNameBytes ||
      utf8_error_offset(name) != std::string_view::npos) {
    throw Error("{}: {}: expected a name in UTF-8 of 1 to {} bytes, found {} ('{}')", reader.file(),
                number, kMaxGgufNameBytes, name.size(), printable(name, 40));
  }
  const std::string what = fmt::format("tensor '{}'", printable(name));
  const std::string where = fmt::format("{}: {}", reader.file(), what);

  Entry entry;
  entry.tensor.name = name;
  const auto n_dimensions = reader.number<std::uint32_t>(what);
  if (n_dimensions < 1 || n_dimensions > kMaxGgufDimensions) {
    throw Error("{}: expected 1 to {} dimensions, found {}", where, kMaxGgufDimensions,
                n_dimensions);
  }
  for (std::uint32_t i = 0; i < n_dimensions; ++i) {
    entry.tensor.shape.push_back(reader.number<std::uint64_t>(what));
  }
  std::ranges::reverse(entry.tensor.shape);
  entry.tensor.dtype = dtype_of(reader.number<std::uint32_t>(what), where);
  entry.offset = reader.number<std::uint64_t>(what);

  const std::vector<std::size_t>& shape = entry.tensor.shape;
  if (std::ranges::find(shape, std::size_t{0}) != shape.end()) {
    throw Error("{}: expected sizes of at least 1, found {}", where, shape_text(shape));
  }
  entry.size = byte_size(entry.tensor.dtype, shape, where);
  return entry;
}

// Sets the bytes of each tensor. Throws Error unless they follow one another in the order of the
// entries, each at a multiple of `alignment`, and fill the data.
void place(std::vector<Entry>& entries, std::span<const std::byte> data, std::size_t alignment,
           const std::string& file) {
  std::size_t at = 0;  // at most one alignment beyond the data
  for (Entry& entry : entries) {
    const std::string where = fmt::format("{}: tensor '{}'", file, printable(entry.tensor.name));
    if (entry.offset != at) {
      throw Error("{}: expected to begin at byte {} of the data, found {}", where, at,
                  entry.offset);
    }
    if (at > data.size() || entry.size > data.size() - at) {
      throw Error("{}: {} {} takes {} bytes, the file has {}: the file is cut short or damaged",
                  where, dtype_name(entry.tensor.dtype), shape_text(entry.tensor.shape), entry.size,
                  at > data.size() ? 0 : data.size() - at);
    }
    entry.tensor.bytes = data.subspan(at, entry.size);
    at = round_up(at + entry.size, alignment);
  }
  if (data.size() > at) {
    throw Error("{}: expected {} bytes of data, as the tensors need, found {}", file, at,
                data.size());
  }
}

}  // namespace

GgufFile::GgufFile(const std::filesystem::path& path) : file_(path) {
  const std::string file = path.string();
  const std::span<const std::byte> bytes = file_.bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  refuse_lfs_pointer(text, file);
  if (!text.starts_with(kMagic)) {
    throw Error("{}: expected a GGUF file, found one that begins with '{}'", file,
                printable(text.substr(0, kMagic.size())));
  }
  ByteReader reader(bytes, file);
  reader.take(kMagic.size(), "magic");
  check_version(reader);
  const auto n_tensors = reader.number<std::uint64_t>("number of tensors");
  const auto n_pairs = reader.number<std::uint64_t>("number of metadata pairs");
  metadata_ = GgufMetadata(reader, n_pairs);

  constexpr std::string_view kAlignment = "general.alignment";
  const std::size_t alignment =
      metadata_.find_size(kAlignment, 1, kMaxAlignment).value_or(kDefaultAlignment);
  if (!std::has_single_bit(alignment)) metadata_.refuse(kAlignment, "a power of two");

  std::vector<Entry> entries;  // grows step by step: n_tensors is an unchecked number
  for (std::uint64_t i = 0; i < n_tensors; ++i) entries.push_back(read_entry(reader, i));
  if (!entries.empty()) {
    const std::size_t begin = round_up(reader.position(), alignment);
    place(entries, bytes.subspan(std::min(begin, bytes.size())), alignment, file);
  }
  tensors_.reserve(entries.size());
  for (Entry& entry : entries) tensors_.push_back(std::move(entry.tensor));
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (places_.emplace(tensors_[i].name, i).second) continue;
    throw Error("{}: tensor '{}' is given twice", file, printable(tensors_[i].name));
  }
}

const StoredTensor* GgufFile::find(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

std::uint32_t gguf_type(DType dtype) {
  for (const auto& [number, known] : kTypes) {
    if (known == dtype) return number;
  }
  throw Error("GGUF: expected a type that GGUF has, found {}", dtype_name(dtype));
}

bool is_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  if (has_extension(path, ".gguf")) return true;
  if (has_extension(path, ".bin")) return false;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, GgufFile::kMagic.size()> start = {};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == GgufFile::kMagic;
}

}  // namespace stagecraft
