#pragma once

#include <string>
#include <vector>

#include "text/pipeline/pre_tokenizer.h"

namespace stagecraft {

// The pieces into which `cutter` cuts a text.
inline std::vector<std::string> pieces_of(const PreTokenizer& cutter, const std::string& text) {
  Pieces pieces{text, {}};
  if (!text.empty()) pieces.pieces.push_back({0, text.size(), true});
  cutter.apply(pieces, GrowthLimit("text", text.size()));
  std::vector<std::string> parts;
  for (const auto& piece : pieces.pieces) {
    parts.push_back(pieces.text.substr(piece.begin, piece.end - piece.begin));
  }
  return parts;
}

}  // namespace stagecraft
