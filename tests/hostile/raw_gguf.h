#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// The parts of a correct GGUF file. bytes() writes the file after a test has broken one part.
// Written without the reader that it tests.
struct RawGguf {
  struct Pair {
    std::string key;
    std::string value;  // as stored: its type, then the value
  };
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> sizes;  // the innermost first
    std::uint32_t type;
    std::uint64_t offset;
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::optional<std::uint64_t> n_tensors, n_pairs;  // instead of the true counts
  std::vector<Pair> pairs;
  std::vector<Tensor> tensors;
  std::string data;

  static RawGguf read(const std::filesystem::path& path);
  std::string bytes() const;

  Tensor& tensor(std::string_view name);
  // Read a tensor of f32; append one behind the others.
  std::vector<float> floats(std::string_view name);
  void add(const std::string& name, std::vector<std::uint64_t> sizes,
           const std::vector<float>& values);
  void set(std::string_view key, std::string value);  // a new key goes to the end
  void erase(std::string_view key);
};

// Numbers and texts as a file stores them.
std::string u32_bytes(std::uint32_t value);
std::string u64_bytes(std::uint64_t value);
std::string text_bytes(std::string_view text);

// Metadata values as stored: the type, then the value.
enum MetadataType : std::uint32_t {
  kU8 = 0,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kText = 8,
  kArray = 9,
  kU64 = 10
};
std::string u32(std::uint32_t value);
std::string i32(std::int32_t value);
std::string u64(std::uint64_t value);
std::string f32(float value);
std::string boolean(unsigned char value);
std::string text_value(std::string_view text);
std::string texts(const std::vector<std::string>& texts);
std::string i32_array(const std::vector<std::int32_t>& values);

}  // namespace stagecraft
