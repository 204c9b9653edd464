#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "base/token.h"

namespace stagecraft {

// Adds special tokens around the ids of a text, such as begin-of-text.
class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  // The "post_processor" of a tokenizer.json: TemplateProcessing (its template for one text; the
  // template for pairs is not used), ByteLevel (it changes offsets only), or a Sequence of these.
  explicit PostProcessor(const JsonNode& node);

  // If `add_special` is false, the tokens of the template are not added.
  std::vector<TokenId> apply(std::vector<TokenId> ids, bool add_special) const;

  // All ids that may be added, so that a caller can check that they exist.
  std::vector<TokenId> added_ids() const;

 private:
  void read(const JsonNode& node);
  void read_template(const JsonNode& node);

  // nullopt stands for the ids of the text. Without a template, apply() adds nothing.
  std::optional<std::vector<std::optional<TokenId>>> template_;
};

}  // namespace stagecraft
