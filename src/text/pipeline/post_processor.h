#pragma once

#include <optional>
#include <vector>

#include "base/json.h"
#include "base/token.h"

namespace stagecraft {

// What is put around the ids of a text: begin-of-text and the like.
class PostProcessor {
 public:
  PostProcessor() = default;  // adds nothing
  // The "post_processor" of a tokenizer.json: the template for one text of TemplateProcessing (the
  // one for pairs is not used), ByteLevel (it changes offsets only), or a Sequence of them.
  explicit PostProcessor(const JsonNode& node);

  // With `add_special` false what the template adds is left out.
  std::vector<TokenId> apply(std::vector<TokenId> ids, bool add_special) const;

  // Every id that may be added, for whoever knows which ids exist.
  std::vector<TokenId> added_ids() const;

 private:
  void read(const JsonNode& node);
  void read_template(const JsonNode& node);

  // nullopt stands for the text. No template at all: the text alone.
  std::optional<std::vector<std::optional<TokenId>>> template_;
};

}  // namespace stagecraft
