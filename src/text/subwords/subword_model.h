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

// The heart of a tokenizer: a piece of text, cut and normalized by all that comes before, to ids.
class SubwordModel {
 public:
  // The "model" of a tokenizer.json. Throws Error naming the type where it is not one of ours
  // (BPE, Unigram).
  static std::unique_ptr<const SubwordModel> read(const JsonNode& model);

  virtual ~SubwordModel() = default;

  // Appends the ids of `piece`, which is UTF-8. Depends on nothing but the piece, so that its
  // answer can be remembered.
  virtual void encode(std::string_view piece, std::vector<TokenId>& ids) const = 0;

  // The same without the tokens that are `forbidden`, for a piece that encode() spells with one.
  // Here character by character; a model that can do better does.
  using Forbidden = std::function<bool(TokenId)>;
  virtual void encode_without(const Forbidden& forbidden, std::string_view piece,
                              std::vector<TokenId>& ids) const;

  virtual std::string_view name() const = 0;  // "BPE", "Unigram" ...
  virtual const Vocabulary& vocabulary() const = 0;

  // What stands for text that the model cannot spell.
  virtual std::optional<TokenId> unknown_id() const = 0;
};

}  // namespace stagecraft
