#include "inspection/benchmark.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/cpu/token_cost.h"
#include "backends/cuda/cuda_backend.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/number.h"
#include "base/processors.h"
#include "checkpoint/find_model.h"
#include "operators/kernels/ceilings.h"
#include "programs/bench_operators.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/model_path.h"
#include "programs/options.h"

namespace stagecraft {
namespace {

struct BenchFlags : ModelFlags, EngineFlags {
  std::vector<std::size_t> prompts = {512};
  std::vector<std::size_t> generated = {128};
  std::vector<std::size_t> depths = {0};
  std::vector<std::size_t> batches = {1};
  std::vector<std::size_t> thread_counts;
  std::size_t repetitions = 5;
  bool operators = false;
  std::string json;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string_view backend_name(const Engine& engine) {
  if (engine.options().backend == BackendKind::Cuda) return cuda_backend_name();
  return engine.options().backend == BackendKind::Cpu ? "cpu" : "textbook";
}

// "cuda for the last 20 of 32 layers, cpu for the others"
std::string backend_text(const Engine& engine) {
  const std::string name(backend_name(engine));
  const auto layers = engine.options().gpu_layers;
  if (!layers) return name;
  return fmt::format("{} for the last {} of {} layers, cpu for the others", name, *layers,
                     engine.plan().n_layers);
}

class Bench {
 public:
  Bench(const BenchFlags& flags, const ModelSource& model, Engine& engine)
      : flags_(flags), engine_(engine), model_(model) {
    if (engine.options().backend == BackendKind::Cpu) {
      cost_ = token_cost(engine.plan(), engine.checkpoint());
    }
  }

  void run(std::size_t n_threads) {
    ThreadPool threads(std::min(n_threads, usable_cores()));
    ceilings_ = measure_ceilings(kernels(), threads);
    engine_.use_threads(n_threads);
    fmt::print(
        "\n{}; limits of this machine, measured now: {:.0f} f32, {:.0f} bf16, {:.0f} int8 "
        "Gop/s; reads {:.1f} GB/s\n",
        counted(threads.size(), "thread"), ceilings_.operations[0] * 1e-9,
        ceilings_.operations[1] * 1e-9, ceilings_.operations[2] * 1e-9, ceilings_.read * 1e-9);
    fmt::print("  {:<26} {:>12}  {:<21} {}\n", "test", "tokens/s", "lowest - highest", "");
    for (const std::size_t depth : flags_.depths) {
      for (const std::size_t batch : flags_.batches) {
        for (const std::size_t n : flags_.prompts) measure(n, 0, depth, batch);
        for (const std::size_t n : flags_.generated) measure(0, n, depth, batch);
      }
    }
  }

  const nlohmann::json& results() const { return results_; }
  const InterruptGuard& guard() const { return guard_; }

 private:
  void measure(std::size_t prompt, std::size_t generate, std::size_t depth, std::size_t batch) {
    if (prompt + generate == 0 || guard_.interrupted()) return;
    const BenchmarkSizes sizes{prompt, generate, depth, batch, flags_.repetitions};
    const BenchmarkResult result = naming_the_model(
        model_, [&] { return benchmark(engine_, sizes, [&] { return !guard_.interrupted(); }); });
    const auto& seconds = prompt != 0 ? result.prompt_seconds : result.generate_seconds;
    if (seconds.empty()) return;
    const double tokens = static_cast<double>((prompt + generate) * batch);
    std::vector<double> rates;
    rates.reserve(seconds.size());
    for (const double s : seconds) rates.push_back(tokens / s);
    const auto [lowest, highest] = std::ranges::minmax(rates);
    std::string name = fmt::format("{} {}", prompt != 0 ? "prompt" : "generate", prompt + generate);
    if (depth != 0) name += fmt::format(" after {}", depth);
    if (batch != 1) name += fmt::format(", {} at once", batch);
    fmt::print("  {:<26} {:>12.1f}  {:<21} {}\n", name, median(rates),
               fmt::format("{:.1f} - {:.1f}", lowest, highest), of_the_limit(median(rates), sizes));
    const auto layers = engine_.options().gpu_layers;
    results_.push_back({{"model", model_.name()},
                        {"isa", kernels().name},
                        {"backend", backend_name(engine_)},
                        {"gpu_layers", layers ? nlohmann::json(*layers) : nlohmann::json()},
                        {"kv_type", name_of(*engine_.options().kv_type)},
                        {"threads", engine_.n_threads()},
                        {"prompt", prompt},
                        {"generate", generate},
                        {"depth", depth},
                        {"batch", batch},
                        {"seconds", seconds},
                        {"tokens_per_second", median(rates)},
                        {"logits_hash", fmt::format("{:016x}", result.logits_hash)},
                        {"read_ceiling", ceilings_.read},
                        {"operation_ceilings", ceilings_.operations}});
  }

  // The measured rate as a percentage of what the machine can do.
  std::string of_the_limit(double rate, const BenchmarkSizes& sizes) const {
    if (!cost_) return "";
    if (sizes.prompt != 0) {
      const double reached = rate * cost_->operations;
      return fmt::format("{:.0f} Gop/s, {:.0f}% of the limit", reached * 1e-9,
                         100.0 * reached / ceilings_.operations[static_cast<int>(cost_->rows)]);
    }
    // One pass reads the weights once, and the keys and values of each sequence. Generating begins
    // at the depth, so this is the length of the text in the middle.
    const double cache = attended_bytes(engine_.plan(), *engine_.options().kv_type,
                                        sizes.depth + (sizes.generate + 1) / 2);
    const double reached = rate * (cost_->bytes / static_cast<double>(sizes.batch) + cache);
    const double percent = 100.0 * reached / ceilings_.read;
    return fmt::format("{:.1f} GB/s, {}", reached * 1e-9,
                       percent > 100.0 ? "more than the memory's speed: from a cache"
                                       : fmt::format("{:.0f}% of the memory's speed", percent));
  }

  const BenchFlags& flags_;
  Engine& engine_;
  const ModelSource& model_;
  std::optional<TokenCost> cost_;  // of the CPU backend
  Ceilings ceilings_{};
  nlohmann::json results_ = nlohmann::json::array();
  InterruptGuard guard_;
};

// The file of --json. A path that cannot be written throws before the first measurement.
class JsonFile {
 public:
  explicit JsonFile(std::string path) : path_(std::move(path)) {
    if (!path_.empty()) AtomicFile(path_, true);
  }
  void write(const nlohmann::json& results) const {
    if (path_.empty()) return;
    AtomicFile file(path_, true);
    file.write(json_text(results, 1) + "\n");
    file.commit();
  }

 private:
  std::string path_;
};

// The largest number of positions in a measurement.
std::size_t longest_context(const BenchFlags& flags) {
  return std::ranges::max(flags.depths) +
         std::max(std::ranges::max(flags.prompts), std::ranges::max(flags.generated));
}

void check_sizes(const BenchFlags& flags) {
  const auto is_0 = [](std::size_t n) { return n == 0; };
  if (!std::ranges::all_of(flags.prompts, is_0) || !std::ranges::all_of(flags.generated, is_0))
    return;
  throw CLI::ValidationError("--prompt, --generate",
                             "expected a number of tokens above 0, found 0 in both");
}

void run_bench(const BenchFlags& flags) {
  if (!flags.operators) check_sizes(flags);
  const JsonFile json(flags.json);
  if (flags.operators) return json.write(bench_operators());
  const ModelSource model = find_model(flags.model, "story");
  if (!flags.json.empty()) refuse_model_file(flags.json, model);
  const std::size_t all = flags.thread_count();
  Engine engine = flags.open_engine(model);
  fmt::print(
      "{}: backend {}, kernels {}, keys and values {}; {}\n", model.name(), backend_text(engine),
      kernels().name, name_of(*engine.options().kv_type),
      flags.repetitions == 1 ? "one run" : fmt::format("the median of {} runs", flags.repetitions));
  Bench bench(flags, model, engine);
  note_long_context(engine.plan(), longest_context(flags));
  for (const std::size_t n : flags.thread_counts.empty() ? std::vector{all} : flags.thread_counts) {
    bench.run(n);
    if (!bench.guard().interrupted()) continue;
    print_note(flags.json.empty() ? "[interrupted]" : "[interrupted: --json has not been written]");
    bench.guard().end_if_interrupted();
  }
  json.write(bench.results());
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* command = app.add_subcommand("bench", "Measure how fast a model runs on this machine");
  const auto flags = std::make_shared<BenchFlags>();
  const auto list = [&](const char* name, std::vector<std::size_t>& value, const char* help,
                        std::uint64_t least, std::uint64_t most) {
    // Not CLI11's delimiter(): it drops empty elements, as in 1,,2.
    const auto is_in_range = [one = whole_in_range(least, most)](std::string& text) {
      for (std::string& part : split_at_commas(text)) {
        if (part.empty()) {
          return fmt::format("expected numbers as in 1,2,3, found '{}'", printable(text));
        }
        if (std::string problem = one(part); !problem.empty()) return problem;
      }
      return std::string();
    };
    command
        ->add_option_function<std::vector<std::string>>(
            name,
            [&value](const std::vector<std::string>& texts) {
              value.clear();
              for (const std::string& text : texts) {
                for (const std::string& part : split_at_commas(text)) {
                  value.push_back(*integer_of<std::size_t>(part));
                }
              }
            },
            help)
        ->check(CLI::Validator(is_in_range, ""))
        ->default_str(fmt::format("[{}]", fmt::join(value, ",")))
        ->type_name("N,N");
  };
  flags->add_model_to(*command);
  list("-p,--prompt", flags->prompts, "Tokens of a prompt, read together; 0: none", 0, 1'000'000);
  list("-n,--generate", flags->generated, "Tokens generated one by one; 0: none", 0, 1'000'000);
  list("-d,--depth", flags->depths, "Tokens that are already in the KV cache", 0, 1'000'000);
  list("-b,--batch", flags->batches, "Sequences at the same time", 1, 512);
  list("-t,--threads", flags->thread_counts, "Threads (default: one for each core)", 1,
       kMostThreads);
  command->add_option("-r,--repetitions", flags->repetitions, "Timed runs of each test")
      ->check(whole_in_range(1, 1000))
      ->capture_default_str()
      ->type_name("N");
  flags->add_backend_to(*command);
  command->add_flag("--operators", flags->operators,
                    "Measure only the kernels of the linear layers");
  command->add_option("--json", flags->json, "Also write all results to this file")
      ->check(not_empty())
      ->type_name("FILE");
  command->footer("Example: stagecraft bench --model smollm2-135m -d 0,1024 -t 1,2");
  command->callback([flags] { run_bench(*flags); });
}

}  // namespace stagecraft
