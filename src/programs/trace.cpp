#include "inspection/trace.h"
#include "base/number.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoint/find_model.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/model_path.h"
#include "programs/options.h"

namespace stagecraft {
namespace {

struct TraceFlags : ModelFlags, EngineFlags {
  std::string ids;
  std::string only;
  std::string out;
  std::size_t cached = 0;
};

// Prints one line per activation, about its row for the last token: its RMS, its first numbers, its
// largest number.
void print_activations(std::span<const Activation> activations) {
  constexpr std::size_t kFirst = 3;
  fmt::print("{:<23}{:<9}{:>7} {:<26}{}\n", "last token of", "shape", "rms", " first numbers",
             "largest");
  for (const Activation& activation : activations) {
    const auto row = activation.values.view().row(activation.values.rows() - 1);
    double squares = 0.0;
    for (const float x : row) squares += static_cast<double>(x) * x;
    std::string first;
    for (const float x : row.first(std::min(kFirst, row.size()))) {
      first += fmt::format("{:>7.2f}", x);
    }
    const auto largest = std::max_element(row.begin(), row.end());
    fmt::print("{:<23}{:<9}{:>7.3f} {:<26}{:.2f} at {}\n", activation.name,
               fmt::format("[{}]", fmt::join(activation.shape, ", ")),
               std::sqrt(squares / static_cast<double>(row.size())),
               first + (row.size() > kFirst ? " ..." : ""), *largest, largest - row.begin());
  }
}

// Keeps the activations whose names contain `only`.
void select(std::vector<Activation>& activations, const std::string& only) {
  const std::string first = activations.front().name;
  const std::string last = activations.back().name;
  std::erase_if(activations, [&](const Activation& activation) {
    return activation.name.find(only) == std::string::npos;
  });
  if (activations.empty()) {
    throw CLI::ValidationError(
        "--only", fmt::format("expected a part of a name from '{}' to '{}', found '{}'", first,
                              last, printable(only)));
  }
}

void run_trace(const TraceFlags& flags) {
  const std::vector<TokenId> ids = parse_id_list("--ids", flags.ids);
  if (flags.cached > ids.size()) {
    throw CLI::ValidationError(
        "--cached",
        fmt::format("expected 0 to {}, the number of ids, found {}", ids.size(), flags.cached));
  }
  std::vector<std::size_t> passes(flags.cached, 1);
  if (flags.cached < ids.size()) passes.push_back(ids.size() - flags.cached);

  const ModelSource model = find_model(flags.model, "story");
  if (!flags.out.empty()) refuse_model_file(flags.out, model);
  Engine engine = flags.open_observed(model);
  check_ids("--ids", ids, engine.plan().vocab_size);
  note_long_context(engine.plan(), ids.size());
  std::vector<Activation> activations = trace(engine, ids, passes);
  select(activations, flags.only);
  if (flags.out.empty()) {
    print_activations(activations);
    return;
  }
  const InterruptGuard guard(InterruptGuard::kEndToo);
  write_trace(flags.out, activations, [&] { guard.stop_if_interrupted(); });
  fmt::print("{}: {} activations of {}\n", flags.out, activations.size(),
             counted(ids.size(), "token"));
}

}  // namespace

void add_trace(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("trace", "Every activation of a forward pass, as a table or in a file");
  const auto flags = std::make_shared<TraceFlags>();
  flags->add_model_to(*command);
  command->add_option("--ids", flags->ids, "The token ids to run on")
      ->required()
      ->type_name("1,2,3");
  command->add_option("--only", flags->only, "Only activations whose name contains this")
      ->type_name("NAME");
  command
      ->add_option("-o,--out", flags->out,
                   "The safetensors file to write, instead of a table on the terminal")
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("--cached", flags->cached,
                   "Run the first N ids one at a time through the KV cache, the rest at once")
      ->check(whole_in_range(0, kMostTokens))
      ->type_name("N");
  flags->add_threads_to(*command);
  command->footer(
      "Examples: stagecraft trace --model models/story --ids 1,2,3 --only residual\n"
      "          stagecraft trace --model models/story --ids 1,2,3 --out mine.safetensors\n"
      "`stagecraft compare` finds the first difference of two such files.");
  command->callback([flags] { run_trace(*flags); });
}

}  // namespace stagecraft
