#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "text/pipeline/growth_limit.h"

namespace stagecraft {

// Changes text before it is cut: Unicode normal forms, lower case, a space put in front.
class Normalizer {
 public:
  // The "normalizer" of a tokenizer.json, or an element of a Sequence. Throws Error naming the type
  // if it is not supported.
  static std::unique_ptr<const Normalizer> read(const JsonNode& node);

  virtual ~Normalizer() = default;

  // `text` is UTF-8 and not empty. `at_start`: whether its first character comes from the first
  // character of the input. Implementations update it; Metaspace's "first" needs it later.
  // Throws Error if the result is longer than `limit` allows.
  virtual void apply(std::string& text, bool& at_start, const GrowthLimit& limit) const = 0;
};

}  // namespace stagecraft
