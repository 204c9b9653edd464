#include "text/pipeline/split.h"

#include <utility>

namespace stagecraft {
namespace {

// Joins each match to the part directly before it, unless that is a match, too.
void append_merged_with_previous(const std::vector<Match>& matches, std::vector<Match>& parts) {
  const std::size_t first = parts.size();
  bool after_match = false;
  for (const Match& match : matches) {
    if (match.matched && !after_match && parts.size() > first) {
      parts.back().end = match.end;
    } else {
      parts.push_back(match);
    }
    after_match = match.matched;
  }
}

void append_merged_with_next(const std::vector<Match>& matches, std::vector<Match>& parts) {
  for (std::size_t i = 0; i < matches.size(); ++i) {
    Match part = matches[i];
    if (part.matched && i + 1 < matches.size() && !matches[i + 1].matched) {
      part.end = matches[++i].end;
    }
    parts.push_back(part);
  }
}

void append_contiguous(const std::vector<Match>& matches, std::vector<Match>& parts) {
  const std::size_t first = parts.size();
  for (const Match& match : matches) {
    if (parts.size() > first && parts.back().matched == match.matched) {
      parts.back().end = match.end;
    } else {
      parts.push_back(match);
    }
  }
}

// Appends the parts of a text, given `matches`, which must cover it. The parts cover it, too,
// except for removed matches.
void append_split(const std::vector<Match>& matches, SplitBehavior behavior,
                  std::vector<Match>& parts) {
  switch (behavior) {
    case SplitBehavior::kRemoved:
      for (const Match& match : matches) {
        if (!match.matched) parts.push_back(match);
      }
      break;
    case SplitBehavior::kIsolated:
      parts.insert(parts.end(), matches.begin(), matches.end());
      break;
    case SplitBehavior::kMergedWithPrevious:
      append_merged_with_previous(matches, parts);
      break;
    case SplitBehavior::kMergedWithNext:
      append_merged_with_next(matches, parts);
      break;
    case SplitBehavior::kContiguous:
      append_contiguous(matches, parts);
      break;
  }
}

}  // namespace

SplitBehavior read_split_behavior(const JsonNode& node) {
  const std::string_view name = node.string();
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  node.refuse("'Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext' or 'Contiguous'");
}

void split_pieces(Pieces& pieces, SplitBehavior behavior, const Finder& find) {
  std::vector<Pieces::Piece> cut;
  cut.reserve(pieces.pieces.size());
  std::vector<Match> matches;
  std::vector<Match> parts;
  for (const Pieces::Piece& piece : pieces.pieces) {
    matches.clear();
    parts.clear();
    find(std::string_view(pieces.text).substr(piece.begin, piece.end - piece.begin), matches);
    append_split(matches, behavior, parts);
    for (const Match& part : parts) {
      if (part.begin == part.end) continue;
      cut.push_back(
          {piece.begin + part.begin, piece.begin + part.end, piece.at_start && part.begin == 0});
    }
  }
  pieces.pieces = std::move(cut);
}

}  // namespace stagecraft
