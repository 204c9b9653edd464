#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf/metadata.h"
#include "model/config_fields.h"

namespace stagecraft {

// The keys of one architecture in the metadata of a GGUF file: a name such as "block_count" stands
// for the key "llama.block_count". Each function throws Error, naming the file and the key, if the
// value is missing or has another type or range. Remembers which keys were asked for:
// refuse_leftovers() refuses all others.
class ArchitectureKeys {
 public:
  // `metadata` must outlive this object.
  ArchitectureKeys(const GgufMetadata& metadata, std::string_view architecture);

  bool has(std::string_view name) { return metadata_.has(key(name)); }
  // Whether there is a value other than 0 and false. A value of a wrong type counts, too: the
  // function that reads it refuses it.
  bool is_set(std::string_view name) { return has(name) && !metadata_.is_off(key(name)); }
  bool is_array(std::string_view name) { return has(name) && metadata_.is_array(key(name)); }

  // From 1 (count: from 0) to `max`.
  std::size_t size(std::string_view name, std::size_t max = kMaxDimension) {
    return metadata_.size(key(name), 1, max);
  }
  // The same for a key that may be an array with the same number for each layer.
  std::size_t size_of_layers(std::string_view name) {
    return metadata_.size_of_layers(key(name), kMaxDimension);
  }
  std::size_t size_or(std::string_view name, std::size_t default_value) {
    return has(name) ? size(name) : default_value;
  }
  std::size_t count(std::string_view name) { return metadata_.size(key(name), 0, kMaxDimension); }
  double number(std::string_view name) { return metadata_.number(key(name)); }
  double number(std::string_view name, double min, double max) {
    return metadata_.number(key(name), min, max);
  }
  // False if the key is missing.
  bool flag(std::string_view name) { return metadata_.flag_or(key(name), false); }
  std::string_view text_or(std::string_view name, std::string_view default_value) {
    return metadata_.text_or(key(name), default_value);
  }
  std::vector<bool> flags(std::string_view name) { return metadata_.flags(key(name)); }
  std::vector<std::int64_t> integers(std::string_view name) {
    return metadata_.integers(key(name));
  }

  // Throws Error: this key has a value that is not as expected.
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) {
    metadata_.refuse(key(name), expected);
  }
  // Throws Error if the file has this key with another value.
  void expect(std::string_view name, std::size_t value);

  // The key is known, and its value does not matter.
  void ignore(std::string_view name) { asked_.emplace_back(name); }
  // Throws Error if a key of the architecture has a value other than 0, false, "none" or empty, and
  // no function above was called with its name.
  void refuse_leftovers() const;

 private:
  std::string key(std::string_view name);

  const GgufMetadata& metadata_;
  std::string prefix_;
  std::vector<std::string> asked_;
};

}  // namespace stagecraft
