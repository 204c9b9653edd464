#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/pipeline/pre_tokenizer.h"
#include "text/pipeline/regex.h"

namespace stagecraft {

// What happens to the matches at which a text is cut. Cut at '-', "a--b" becomes
enum class SplitBehavior {
  kRemoved,             // a  b
  kIsolated,            // a  -  -  b
  kMergedWithPrevious,  // a-  -  b
  kMergedWithNext,      // a  -  -b
  kContiguous,          // a  --  b
};

SplitBehavior read_split_behavior(const JsonNode& node);

// Cuts every piece of `pieces` at the matches that `find` appends for the piece's text.
using Finder = std::function<void(std::string_view, std::vector<Match>&)>;
void split_pieces(Pieces& pieces, SplitBehavior behavior, const Finder& find);

}  // namespace stagecraft
