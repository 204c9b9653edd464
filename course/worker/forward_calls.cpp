#include <fmt/format.h>

#include "course/worker/calls.h"
#include "model/forward.h"
#include "tests/support/engines.h"

namespace stagecraft::stages {
namespace {

// A file of its own: the code that generates text could also run the engine's fast layers, which
// must not be in the program of stage 10.

// Feeds the ids in pieces of the given lengths, one pass each. Records the logits of the last
// `logit_rows` tokens of each pass.
void call_forward(Arguments& args) {
  const CourseModel file(args.text("model"));
  const Model& model = file.model;
  const std::vector<TokenId> ids = args.integers("ids");
  const std::vector<int> pieces = args.integers("pieces");
  const std::vector<int> logit_rows = args.integers("logit_rows");
  const std::size_t capacity = args.size("capacity");
  KvCache cache(model.config, capacity);
  Workspace workspace(model.config, ids.size(), capacity, 1);
  args.call([&] {
    std::span<const TokenId> rest = ids;
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      const auto piece = rest.first(static_cast<std::size_t>(pieces[n]));
      rest = rest.subspan(piece.size());
      const auto logits =
          args.out_matrix(fmt::format("logits of pass {}", n),
                          static_cast<std::size_t>(logit_rows[n]), model.config.vocab_size);
      forward(model, piece, cache, workspace, logits);
    }
  });
  args.record("positions in the cache", std::vector<int>{static_cast<int>(cache.length())});
}

const Callable kForwardCalls{{"forward", call_forward}};

}  // namespace

}  // namespace stagecraft::stages
