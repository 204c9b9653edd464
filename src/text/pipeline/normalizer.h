#pragma once

#include <memory>
#include <string>

#include "base/json.h"

namespace stagecraft {

// Changes text before it is cut: Unicode forms, lower case, a space put in front.
class Normalizer {
 public:
  // The "normalizer" of a tokenizer.json, or one in a Sequence. Throws Error naming the type where
  // it is not supported.
  static std::unique_ptr<const Normalizer> read(const JsonNode& node);

  virtual ~Normalizer() = default;

  // `text` is UTF-8 and not empty. `at_start` says whether its first character comes from the first
  // character of the input, and is kept true to that: Metaspace's "first" asks for it later.
  virtual void apply(std::string& text, bool& at_start) const = 0;

  // How many bytes may come out for each that goes in.
  virtual double growth() const { return 1; }
};

}  // namespace stagecraft
