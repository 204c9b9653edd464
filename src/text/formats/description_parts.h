#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace stagecraft {

// A tokenizer is made from a description: what a tokenizer.json says. These are the parts of one,
// from a vocabulary that another kind of file brings (GGUF, llama2.c, .flm), so that there is one
// tokenizer and not one for each.

// What a token is; numbered as GGUF and sentencepiece do.
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

  // Unknown, control and user-defined ones: found in text before it is cut.
  bool is_added() const;
};

// The "vocab" of the model: {"text": id} of those tokens that are `in_vocabulary`.
void add_vocab(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
               const std::vector<bool>& in_vocabulary);
// Puts into the vocabulary each added token that others there follow: Hugging Face's tokenizers
// give one that is missing the next id behind all that are there, whatever id it should have.
void keep_ids_of_added(const std::vector<VocabularyToken>& tokens,
                       std::vector<bool>& in_vocabulary);

// One of the "added_tokens": looked for in text as it is written, before it is normalized.
struct AddedTokenDescription {
  std::string_view content;  // UTF-8
  bool special = true;
  bool lstrip = false, rstrip = false, single_word = false;
};
void add_added_token(JsonBuilder& json, std::int64_t id, const AddedTokenDescription& token);
// All of a vocabulary. All but user-defined ones are special.
void add_added_tokens(JsonBuilder& json, const std::vector<VocabularyToken>& tokens);
// The text of a token, or null.
void add_token_text(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                    std::optional<std::size_t> id);
// A "post_processor" that puts one token before a text and one behind it; null for none.
void add_post_processor(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                        std::optional<std::size_t> begin, std::optional<std::size_t> end);

// A BPE vocabulary whose tokens have a mark, U+2581, where text has a space, as sentencepiece's
// have.
struct MarkedVocabulary {
  std::vector<VocabularyToken> tokens;
  std::vector<double> scores;  // one each; none where there are merges
  // "LEFT RIGHT", the most urgent first. Without, the scores of tokens say what merges.
  std::optional<std::vector<std::string_view>> merges;
  std::optional<std::size_t> unknown;  // for what cannot be spelt
  std::optional<std::size_t> begin;    // put before every text
  std::optional<std::size_t> end;      // put behind it
  bool space_first = true;             // a text begins with a space
  std::string where;                   // the description's, for errors
  std::string tokens_where;            // for errors: "FILE: 'tokenizer.ggml.tokens'"
  std::string scores_where;
};

// The whole description. Merges that go by scores are written down as a list, as Hugging Face's
// conversion does. Throws Error for a score that is no number, and for tokens with scores that are
// so long or so many that all ways to cut them would fill the memory.
Json describe_marked_vocabulary(const MarkedVocabulary& vocabulary);

}  // namespace stagecraft
