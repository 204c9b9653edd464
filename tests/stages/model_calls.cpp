#include <fmt/format.h>

#include "generation/generate.h"
#include "generation/sampler.h"
#include "model/forward.h"
#include "tests/stages/calls.h"
#include "tests/support/engines.h"

namespace stagecraft::stages {
namespace {

// The ids in pieces of the given lengths, one pass each, with the logits of as many of its last
// tokens as `logit_rows` says.
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

SamplerOptions sampler_options(const Arguments& args) {
  return {static_cast<float>(args.scalar("temperature")), args.size("top_k"),
          static_cast<float>(args.scalar("top_p"))};
}

// One token for each u.
void call_sample(Arguments& args) {
  const auto logits = args.vector("logits");
  const auto us = args.vector("u");
  std::vector<TokenProbability> scratch(logits.size());
  std::vector<int> tokens;
  args.call([&] {
    for (const float u : us) tokens.push_back(sample(logits, sampler_options(args), u, scratch));
  });
  args.record("tokens", tokens);
}

void call_generate(Arguments& args) {
  Engine engine = textbook_engine(args.text("model"));
  Session session(engine, args.size("context"));
  session.feed(args.integers("ids"));
  GenerationOptions options;
  options.max_tokens = args.size("max_tokens");
  options.sampler = sampler_options(args);
  options.repeat_penalty = static_cast<float>(args.scalar("repeat_penalty"));
  options.repeat_last_n = args.size("repeat_last_n");
  options.end_tokens = args.integers("end_tokens");
  Random random(args.size("seed"));
  const std::size_t stop_after = args.size("stop_after");  // 0: never
  std::vector<int> made;
  const StopReason reason = generate(session, options, random, [&](TokenId token) {
    made.push_back(token);
    return made.size() != stop_after;
  });
  args.record("chosen tokens", made);
  args.record("reason", std::vector<int>{static_cast<int>(reason)});
  args.record("fed tokens", session.tokens());
}

const Callable kModelCalls{
    {"forward", call_forward}, {"sample", call_sample}, {"generate", call_generate}};

}  // namespace

}  // namespace stagecraft::stages
