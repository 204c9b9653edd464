#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "checkpoint/byte_reader.h"
#include "checkpoint/weight_file.h"

namespace stagecraft {

struct FlmToken {
  std::string text;  // as in the vocabulary; any bytes
  std::size_t id;
};

// One model file of FastLLM (github.com/ztxz16/fastllm), version 2, mapped. All numbers are int32,
// little-endian:
//   version
//   the pairs       their number; per pair a key and a value, both as a length and bytes
//   the vocabulary  its size; per token a length, that many int32 (one byte of text each), an id
//   the weights     their number; per weight a name, the number of dimensions, the dimensions, a
//                   type (0: f32, 7: f16), the data
// Names, shapes and the order of rows are those of Hugging Face. The pairs hold the fields of its
// config.json and the texts that frame the messages of a chat. The file ends with the last weight.
class FlmFile : public WeightFile {
 public:
  // Throws Error naming the file, the pair, token or tensor, what was expected and what was found.
  explicit FlmFile(const std::filesystem::path& path);

  const std::map<std::string, std::string, std::less<>>& pairs() const { return pairs_; }
  // The value of a key, or "" if it is missing.
  std::string_view value(std::string_view key) const;
  const std::vector<FlmToken>& vocabulary() const { return vocabulary_; }  // as in the file
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void release_pages() const override { file_.release_pages(); }
  const std::string& name() const { return name_; }  // for errors

  static constexpr std::uint32_t kVersion = 2;
  static constexpr std::uint32_t kF32 = 0, kF16 = 7;  // types of weights
  static constexpr std::array<std::string_view, 4> kChatKeys = {"pre_prompt", "user_role",
                                                                "bot_role", "history_sep"};
  // Whether a pair with this key is about text (chat or tokenizer) and not a field of config.json.
  static bool is_about_text(std::string_view key);

 private:
  void read_pairs(ByteReader& reader);
  void read_vocabulary(ByteReader& reader);
  void read_tensors(ByteReader& reader);

  std::string name_;
  MappedFile file_;
  std::map<std::string, std::string, std::less<>> pairs_;
  std::vector<FlmToken> vocabulary_;
  std::vector<StoredTensor> tensors_;
};

// Whether `path` is named .flm: the format has no other mark. False for a folder.
bool is_flm(const std::filesystem::path& path);

}  // namespace stagecraft
