#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/vocabulary.h"

namespace stagecraft {

// A tokenizer is created from a description: the content of a tokenizer.json. These functions write
// parts of a description for a vocabulary from another file format (GGUF, llama2.c, .flm), so that
// one tokenizer implementation serves all formats.

// Writes the "vocab" of the model: {"text": id} of the tokens that are `in_vocabulary`.
void add_vocab(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
               const std::vector<bool>& in_vocabulary);
// Adds each added token to the vocabulary if the vocabulary has a token with a larger id. Hugging
// Face tokenizers would otherwise give it the next id after the vocabulary, not its own id.
void keep_ids_of_added(const std::vector<VocabularyToken>& tokens,
                       std::vector<bool>& in_vocabulary);

// One entry of "added_tokens". It is searched for in the text as written, before normalization.
struct AddedTokenDescription {
  std::string_view content;  // UTF-8
  bool special = true;
  bool lstrip = false, rstrip = false, single_word = false;
};
void add_added_token(JsonBuilder& json, std::int64_t id, const AddedTokenDescription& token);
// Writes the "added_tokens" of a vocabulary. All except user-defined ones are special.
void add_added_tokens(JsonBuilder& json, const std::vector<VocabularyToken>& tokens);
// Writes the text of a token, or null without an id.
void add_token_text(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                    std::optional<std::size_t> id);
// Writes a "post_processor" that puts `begin` before a text and `end` after it; null if both are
// empty.
void add_post_processor(JsonBuilder& json, const std::vector<VocabularyToken>& tokens,
                        std::optional<std::size_t> begin, std::optional<std::size_t> end);
// "normalizer" and "decoder" of a vocabulary in which U+2581 stands for a space, as in
// sentencepiece, as JSON. space_first: put a space before every text.
std::string sentencepiece_normalizer(bool space_first);
std::string sentencepiece_decoder(bool space_first);

// A BPE vocabulary in which U+2581 stands for a space.
struct SentencePieceVocabulary {
  std::vector<VocabularyToken> tokens;
  std::vector<double> scores;  // one per token; empty if there are merges
  // "LEFT RIGHT", the highest priority first. nullopt: the scores of tokens decide what merges.
  std::optional<std::vector<std::string_view>> merges;
  std::optional<std::size_t> unknown;  // for text that cannot be spelt
  std::optional<std::size_t> begin;    // put before every text
  std::optional<std::size_t> end;      // put after it
  bool space_first = true;             // put a space before every text
  std::string where;                   // name of the description, for errors
  std::string tokens_where;            // for errors: "FILE: 'tokenizer.ggml.tokens'"
  std::string scores_where;
};

// The whole description. Merges that follow from scores are written as a list, as in Hugging Face's
// conversion. Throws Error if a score is NaN, or if tokens with scores are so long or so many that
// the list of all ways to cut them would use too much memory.
Json describe_sentencepiece_vocabulary(const SentencePieceVocabulary& vocabulary);

}  // namespace stagecraft
