#pragma once

#include <memory>
#include <string>

#include "base/json.h"

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
  virtual void apply(std::string& text, bool& at_start) const = 0;

  // The largest possible number of output bytes per input byte.
  virtual double growth() const { return 1; }
};

}  // namespace stagecraft
