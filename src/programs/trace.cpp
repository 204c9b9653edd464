#include "generation/trace.h"

#include "base/error.h"
#include "mine/students_code.h"
#include "programs/commands.h"
#include "programs/model_path.h"
#include "programs/options.h"

namespace stagecraft {
namespace {

struct TraceFlags : GenerationFlags {
  std::string ids;
  std::string out;
  std::size_t cached = 0;
};

void run_trace(const TraceFlags& flags) {
  const std::vector<TokenId> ids = parse_id_list("--ids", flags.ids);
  if (flags.cached > ids.size()) {
    throw CLI::ValidationError(
        "--cached",
        fmt::format("expected 0 to {}, the number of ids, found {}", ids.size(), flags.cached));
  }
  std::vector<std::size_t> passes(flags.cached, 1);
  if (flags.cached < ids.size()) passes.push_back(ids.size() - flags.cached);

  Engine engine =
      Engine::open(find_model(flags.model, "story"), {BackendKind::Textbook, flags.thread_count()});
  tell_students_code(engine.plan().vocab_size);
  check_ids("--ids", ids, engine.plan().vocab_size);
  const std::vector<Activation> activations = trace(engine, ids, passes);
  write_trace(flags.out, activations);
  fmt::print("{}: {} activations of {} token{}\n", flags.out, activations.size(), ids.size(),
             ids.size() == 1 ? "" : "s");
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("trace", "Write every activation of a forward pass to a file");
  const auto flags = std::make_shared<TraceFlags>();
  flags->add_model_to(*command);
  command->add_option("--ids", flags->ids, "The token ids to run on")
      ->required()
      ->type_name("1,2,3");
  command->add_option("-o,--out", flags->out, "The safetensors file to write")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("--cached", flags->cached,
                   "Run the first N ids one at a time through the KV cache, the rest at once")
      ->check(whole_in_range(0, 10'000'000))
      ->type_name("N");
  flags->add_threads_to(*command);
  command->footer(
      "Example: stagecraft trace --model models/story --ids 1,2,3 --out mine.safetensors\n"
      "`stagecraft compare` finds where two such files part.");
  command->callback([flags] { run_trace(*flags); });
}

}  // namespace stagecraft
