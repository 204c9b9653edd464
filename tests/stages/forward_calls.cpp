#include <fmt/format.h>

#include "model/forward.h"
#include "tests/stages/calls.h"

namespace stagecraft::stages {
namespace {

// Model::open could also pack a model for the engine's kernels. Those must not be in the program of
// a stage that is to compute without them.
Model open_textbook(const std::filesystem::path& path) {
  Checkpoint checkpoint = Checkpoint::open(path);
  Model model{read_config(path), std::move(checkpoint), {}, nullptr, KvType::F32};
  model.parameters = load_parameters(model.config, model.checkpoint);
  return model;
}

// The ids in pieces of the given lengths, one pass each, with the logits of as many of its last
// tokens as `logit_rows` says.
void call_forward(Arguments& args) {
  const Model model = open_textbook(args.text("model"));
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
