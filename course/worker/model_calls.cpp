#include "course/worker/calls.h"
#include "course/worker/numbers_taken.h"
#include "generation/generate.h"
#include "generation/sampler.h"
#include "tests/support/engines.h"

namespace stagecraft::stages {
namespace {

SamplerOptions sampler_options(const Arguments& args) {
  return {static_cast<float>(args.scalar("temperature")), args.size("top_k"),
          static_cast<float>(args.scalar("top_p"))};
}

// One token per u.
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
  args.record("random numbers", std::vector<int>{numbers_taken(random, args.size("seed"))});
}

const Callable kModelCalls{{"sample", call_sample}, {"generate", call_generate}};

}  // namespace

}  // namespace stagecraft::stages
