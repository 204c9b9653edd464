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

// Text to token ids and back, as defined by a Hugging Face tokenizer.json, a sentencepiece
// tokenizer.model or a model file of another format. Immutable once open, so threads may share it.
class Tokenizer {
 public:
  // `model` is one of: a tokenizer.json or tokenizer.model; a folder with a tokenizer.json or, if
  // that is missing, a tokenizer.model; a GGUF or .flm file; a llama2.c model with its
  // tokenizer.bin beside it, or that tokenizer.bin. Throws Error naming the file and the part that
  // is missing, wrong or not supported.
  static Tokenizer open(const ModelSource& model);

  // From the text of a tokenizer.json; error messages call it `name`.
  static Tokenizer parse(std::string_view tokenizer_json, const std::string& name);
  // From the content of a tokenizer.json, which may also have been made from another format
  // (tokenizer_source.h).
  static Tokenizer read(const Json& description);

  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;
  ~Tokenizer();

  struct EncodeOptions {
    // true: text that spells a special token becomes that token. false: it stays text. (Added
    // tokens that are not special are found in both cases.)
    bool parse_special = true;
    bool add_special = false;  // add the tokens of the post-processor (begin-of-text and the like)
    bool at_start = true;      // false: other tokens come before; a start may get an extra space
  };
  // Throws Error with the byte offset if `text` is not UTF-8. Also throws if a character has no
  // token and the file names no unknown token, or if matching a pattern of the file takes too long.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
  // The same, but typed text never becomes a special token, neither alone nor together with the
  // frame around it. If no typed text spells a special token, the ids are those of the whole
  // encoded as one text.
  std::vector<TokenId> encode(const MarkedText& text, EncodeOptions options) const;

  // The bytes of the ids, special tokens included. They may be invalid UTF-8 (half a character).
  // Throws Error if an id is negative or at least vocab_size(). An id in between without a token
  // gives nothing.
  std::string decode(std::span<const TokenId> ids) const;

  // The bytes that one token adds inside a text. They may differ from decode({id}): some tokenizers
  // drop a space at the beginning of a text. Empty if no token has this id.
  std::string bytes_of(TokenId id) const;

  std::string_view algorithm() const;                          // "BPE", "Unigram" ...
  std::size_t vocab_size() const;                              // the largest id + 1
  std::optional<TokenId> id_of(std::string_view token) const;  // as the vocabulary spells it
  std::string_view token_of(TokenId id) const;                 // empty if no token has this id
  bool is_special(TokenId id) const;

  struct Impl;  // the components; text/tokenizer_impl.h

 private:
  friend class StreamDecoder;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// The file that Tokenizer::open reads for this path: `path` itself unless it is a folder. nullopt
// if a folder has no such file.
std::optional<std::filesystem::path> tokenizer_file(const std::filesystem::path& path);

}  // namespace stagecraft
