#pragma once

#include <memory>

#include "text/pipeline/added_tokens.h"
#include "text/pipeline/decoder.h"
#include "text/pipeline/normalizer.h"
#include "text/pipeline/post_processor.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/subwords/subword_model.h"
#include "text/tokenizer.h"

namespace stagecraft {

// The components of a tokenizer.json, in the order in which they process text. Added tokens are
// found first. The text between them is normalized and cut into pieces; the model turns each piece
// into ids:
//
//   "Hello<|im_end|>"  ->  "Hello" <|im_end|>  ->  "Hello" | 2  ->  [9707] | 2  ->  [9707, 2]
//                     added tokens        normalizer, cuts      model         post-processor
// A GGUF file and a sentencepiece model are described with the same components.
struct Tokenizer::Impl {
  // From the tokenizer.json or tokenizer.model that tokenizer_file() found.
  static Impl read_file(const std::filesystem::path& path);
  static Impl read(const Json& description);

  std::string file;
  std::unique_ptr<const SubwordModel> model;
  std::unique_ptr<const Normalizer> normalizer;       // may be null
  std::unique_ptr<const PreTokenizer> pre_tokenizer;  // may be null
  AddedTokens added;
  PostProcessor post_processor;
  Decoder decoder;

  std::size_t end_id() const;
  // The text of an id, as the decoder takes it; nullopt if no token has this id.
  std::optional<std::string_view> text_to_decode(TokenId id) const;
};

}  // namespace stagecraft
