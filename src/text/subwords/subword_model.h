#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/token.h"
#include "text/vocabulary.h"

namespace stagecraft {

// The central step of a tokenizer: a piece of text, already normalized and split, to ids.
class SubwordModel {
 public:
  // The "model" of a tokenizer.json. Throws Error naming its type if it is none of BPE, Unigram and
  // LongestMatch.
  static std::unique_ptr<const SubwordModel> read(const JsonNode& model);

  virtual ~SubwordModel() = default;

  // Appends the ids of `piece`, which must be UTF-8. The result depends only on the piece, so that
  // callers can remember it.
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;

  // The same without the tokens that are `forbidden`. Needed if encode() uses one. No token of a
  // single character may be forbidden, nor the unknown token: the default encodes each character
  // separately. A model may override it with a better method.
  using Forbidden = std::function<bool(TokenId)>;
  virtual void encode_without(const Forbidden& forbidden, std::string_view piece,
                              std::vector<TokenId>& ids) const;

  virtual std::string_view name() const = 0;  // "BPE", "Unigram" ...
  virtual const Vocabulary& vocabulary() const = 0;

  // The token for text that the model cannot spell.
  virtual std::optional<TokenId> unknown_id() const = 0;

 protected:
  // Throws Error if positions in `piece` do not fit into 31 bits.
  static void check_size(std::string_view piece);
};

}  // namespace stagecraft
