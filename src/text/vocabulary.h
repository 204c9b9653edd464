#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/token.h"

namespace stagecraft {

// The kind of a token, numbered as in GGUF and sentencepiece.
enum class TokenKind {
  Normal = 1,
  Unknown = 2,
  Control = 3,
  UserDefined = 4,
  Unused = 5,
  Byte = 6
};

struct VocabularyToken {
  std::string_view text;  // UTF-8, as the vocabulary spells it
  TokenKind kind;

  // Unknown, control and user-defined tokens: they are found in text before it is cut.
  bool is_added() const;
};

// Real vocabularies have gaps between their ids: the ids of this many tokens must be lower.
inline constexpr std::size_t largest_end_id(std::size_t n_tokens) { return 2 * n_tokens + 65536; }

// Token text to id and back. One string holds all texts, and one open-addressing hash table maps
// texts to ids: a vocabulary of 150,000 tokens is built in milliseconds.
class Vocabulary {
 public:
  // From a JSON object {"text": id, ...}. Throws Error if an id is negative, given twice, or so
  // large that most smaller ids would be missing. So memory is proportional to the number of
  // entries, whatever ids a file claims.
  static Vocabulary read(const JsonNode& object);
  // From texts in the order of their ids. Throws Error "WHERE[ID]: ..." if a text occurs twice.
  static Vocabulary of(std::span<const std::string_view> texts, const std::string& where);

  std::optional<TokenId> find(std::string_view text) const;
  // Empty if no token has this id (or its text is empty).
  std::string_view text(TokenId id) const;
  bool contains(TokenId id) const;

  std::size_t end_id() const { return texts_.size(); }  // the largest id + 1

 private:
  struct Text {
    std::uint32_t offset = 0;
    std::uint32_t length = 0;
    bool used = false;
  };
  void reserve(std::size_t n_tokens, std::size_t end_id, std::size_t n_bytes);
  // Returns false and adds nothing if `text` is already present. `id` must be unused.
  bool add(std::string_view text, TokenId id);
  std::size_t slot_of(std::string_view text) const;

  std::string arena_;
  std::vector<Text> texts_;     // by id
  std::vector<TokenId> slots_;  // its size is a power of two, at most half is in use; -1: free
};

}  // namespace stagecraft
