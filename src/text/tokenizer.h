#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "checkpoint/model_source.h"
#include "text/marked_text.h"

namespace stagecraft {

class Json;

// Text to token ids and back, as a Hugging Face tokenizer.json, a sentencepiece tokenizer.model or
// a model of another format defines it. Immutable once open, so threads may share it.
class Tokenizer {
 public:
  // `model`: one of these two files, or a folder that holds a tokenizer.json or, if not, a
  // tokenizer.model; a GGUF or .flm file; a llama2.c model with its tokenizer.bin beside it, or
  // that file. Throws Error naming the file and the part that is missing, wrong or not supported.
  static Tokenizer open(const ModelSource& model);

  // From the text of a tokenizer.json; `name` stands for its file in errors.
  static Tokenizer parse(std::string_view tokenizer_json, const std::string& name);
  // From what a tokenizer.json says, wherever it comes from (tokenizer_source.h).
  static Tokenizer read(const Json& description);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  struct EncodeOptions {
    // Text that spells a special token becomes that token; else it stays text, whatever it spells.
    // (Added tokens that are not special are text, and found in both.)
    bool parse_special = true;
    bool add_special = false;  // add what the post-processor adds (begin-of-text and the like)
    bool at_start = true;      // false: tokens stand before; some tokenizers add a space at a start
  };
  // Throws Error with the byte offset if `text` is not UTF-8, and where a character has no token
  // and the file names none for that, or a pattern of the file takes too long to decide.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
  // The same, but what was typed stays text, whatever it spells, alone or with the frame around it.
  // Where it spells no special token, these are the ids of the whole as one text.
  std::vector<TokenId> encode(const MarkedText& text, EncodeOptions options) const;

  // The bytes that the ids stand for, special tokens included. Bytes that are no UTF-8 (half a
  // character) are given as they are. Throws Error on an id that is negative or from vocab_size()
  // on; one in between that no token has gives nothing.
  std::string decode(std::span<const TokenId> ids) const;

  // The bytes that one token adds within a text, where some tokenizers keep a space that they drop
  // at its beginning. Empty where no token has this id.
  std::string bytes_of(TokenId id) const;

  std::string_view algorithm() const;                          // "BPE", "Unigram" ...
  std::size_t vocab_size() const;                              // the largest id + 1
  std::optional<TokenId> id_of(std::string_view token) const;  // as the vocabulary spells it
  std::string_view token_of(TokenId id) const;                 // empty where no token has this id
  bool is_special(TokenId id) const;

  struct Impl;  // the parts; text/tokenizer_impl.h

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// The file that Tokenizer::open reads for this path, or nullopt where a folder holds none.
std::optional<std::filesystem::path> tokenizer_file(const std::filesystem::path& path);

}  // namespace stagecraft
