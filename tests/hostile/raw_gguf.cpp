#include "tests/hostile/raw_gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

#include "tests/support/temporary_folder.h"

namespace stagecraft {
namespace {

constexpr std::size_t kAlignment = 32;

class Cursor {
 public:
  explicit Cursor(const std::string& bytes) : bytes_(bytes) {}

  std::string take(std::size_t n) {
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  std::uint64_t number(std::size_t n_bytes) {
    const std::string bytes = take(n_bytes);
    std::uint64_t value = 0;
    for (std::size_t i = n_bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string text() { return take(number(8)); }
  void skip_value(std::uint64_t type) {
    constexpr std::size_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kText) {
      text();
    } else if (type == kArray) {
      const std::uint64_t element = number(4);
      for (std::uint64_t n = number(8); n > 0; --n) skip_value(element);
    } else {
      take(kSizes[type]);
    }
  }
  std::size_t at() const { return at_; }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

void pad(std::string& bytes) {
  bytes.resize((bytes.size() + kAlignment - 1) / kAlignment * kAlignment);
}

std::string little_endian(std::uint64_t value, std::size_t n_bytes) {
  std::string bytes;
  for (std::size_t i = 0; i < n_bytes; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

}  // namespace

RawGguf RawGguf::read(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  Cursor cursor(bytes);
  RawGguf file;
  file.magic = cursor.take(4);
  file.version = static_cast<std::uint32_t>(cursor.number(4));
  const std::uint64_t n_tensors = cursor.number(8);
  for (std::uint64_t n = cursor.number(8); n > 0; --n) {
    Pair pair{cursor.text(), ""};
    const std::size_t begin = cursor.at();
    cursor.skip_value(cursor.number(4));
    pair.value = bytes.substr(begin, cursor.at() - begin);
    file.pairs.push_back(pair);
  }
  for (std::uint64_t i = 0; i < n_tensors; ++i) {
    Tensor tensor{cursor.text(), {}, 0, 0};
    for (std::uint64_t n = cursor.number(4); n > 0; --n) tensor.sizes.push_back(cursor.number(8));
    tensor.type = static_cast<std::uint32_t>(cursor.number(4));
    tensor.offset = cursor.number(8);
    file.tensors.push_back(tensor);
  }
  file.data = bytes.substr((cursor.at() + kAlignment - 1) / kAlignment * kAlignment);
  return file;
}

std::string RawGguf::bytes() const {
  std::string bytes = magic + u32_bytes(version) + u64_bytes(n_tensors.value_or(tensors.size())) +
                      u64_bytes(n_pairs.value_or(pairs.size()));
  for (const Pair& pair : pairs) bytes += text_bytes(pair.key) + pair.value;
  for (const Tensor& tensor : tensors) {
    bytes += text_bytes(tensor.name) + u32_bytes(static_cast<std::uint32_t>(tensor.sizes.size()));
    for (const std::uint64_t size : tensor.sizes) bytes += u64_bytes(size);
    bytes += u32_bytes(tensor.type) + u64_bytes(tensor.offset);
  }
  pad(bytes);
  return bytes + data;
}

RawGguf::Tensor& RawGguf::tensor(std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &Tensor::name);
  if (found == tensors.end()) throw std::logic_error("no such tensor");
  return *found;
}

void RawGguf::set(std::string_view key, std::string value) {
  const auto found = std::ranges::find(pairs, key, &Pair::key);
  if (found == pairs.end()) {
    pairs.push_back({std::string(key), value});
  } else {
    found->value = value;
  }
}

std::vector<float> RawGguf::floats(std::string_view name) {
  const Tensor& found = tensor(name);
  std::size_t n = 1;
  for (const std::uint64_t size : found.sizes) n *= size;
  std::vector<float> values(n);
  std::memcpy(values.data(), data.data() + found.offset, n * sizeof(float));
  return values;
}

void RawGguf::add(const std::string& name, std::vector<std::uint64_t> sizes,
                  const std::vector<float>& values) {
  const auto align = [&] { data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment); };
  align();
  tensors.push_back({name, std::move(sizes), 0, data.size()});
  data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  align();
}

void RawGguf::erase(std::string_view key) {
  std::erase_if(pairs, [&](const Pair& pair) { return pair.key == key; });
}

std::string u32_bytes(std::uint32_t value) { return little_endian(value, 4); }
std::string u64_bytes(std::uint64_t value) { return little_endian(value, 8); }
std::string text_bytes(std::string_view text) { return u64_bytes(text.size()) + std::string(text); }

std::string u32(std::uint32_t value) { return u32_bytes(kU32) + u32_bytes(value); }
std::string i32(std::int32_t value) {
  return u32_bytes(kI32) + u32_bytes(static_cast<std::uint32_t>(value));
}
std::string u64(std::uint64_t value) { return u32_bytes(kU64) + u64_bytes(value); }
std::string f32(float value) {
  return u32_bytes(kF32) + u32_bytes(std::bit_cast<std::uint32_t>(value));
}
std::string boolean(unsigned char value) { return u32_bytes(kBool) + static_cast<char>(value); }
std::string text_value(std::string_view text) { return u32_bytes(kText) + text_bytes(text); }

std::string texts(const std::vector<std::string>& texts) {
  std::string bytes = u32_bytes(kArray) + u32_bytes(kText) + u64_bytes(texts.size());
  for (const std::string& text : texts) bytes += text_bytes(text);
  return bytes;
}

std::string i32_array(const std::vector<std::int32_t>& values) {
  std::string bytes = u32_bytes(kArray) + u32_bytes(kI32) + u64_bytes(values.size());
  for (const std::int32_t value : values) bytes += u32_bytes(static_cast<std::uint32_t>(value));
  return bytes;
}

}  // namespace stagecraft
