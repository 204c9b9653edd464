#include "inspection/perplexity.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/number.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "checkpoint/find_model.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/model_path.h"
#include "programs/options.h"
#include "programs/terminal.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxTextBytes = 1u << 30;
constexpr std::size_t kDefaultWindow = 512;  // or the trained length, if that is shorter

struct PerplexityFlags : ModelFlags, EngineFlags {
  std::string text;
  std::size_t context = 0;     // 0: kDefaultWindow
  std::size_t stride = 0;      // 0: half the context
  std::size_t max_tokens = 0;  // 0: all
  bool json = false;
};

// Shows the progress in one line, if stderr is a terminal.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(is_terminal(stderr)) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() {
    if (shown_) fmt::print(stderr, "\r\033[K");
  }
  void show(std::size_t done) const {
    if (!shown_) return;
    const double fraction = static_cast<double>(done) / static_cast<double>(total_);
    const double seconds = watch_.seconds();
    fmt::print(stderr, "\r[{}] {:3.0f}% of {} tokens, {:.0f} s left\033[K",
               pad_right(bar(fraction, 24, false), 24), fraction * 100.0, total_,
               fraction > 0.0 ? seconds / fraction - seconds : 0.0);
    std::fflush(stderr);
  }
  double seconds() const { return watch_.seconds(); }

 private:
  std::size_t total_;
  bool shown_;
  Stopwatch watch_;
};

Windows windows_for(const PerplexityFlags& flags, const Plan& plan) {
  Windows windows;
  windows.context = flags.context != 0 ? flags.context : std::min(plan.max_seq_len, kDefaultWindow);
  windows.stride = flags.stride != 0 ? flags.stride : std::max<std::size_t>(windows.context / 2, 1);
  if (windows.stride >= windows.context) {
    throw CLI::ValidationError("--stride",
                               fmt::format("expected 1 to {} (less than the context), found {}",
                                           windows.context - 1, windows.stride));
  }
  return windows;
}

// A number with all digits. JSON has no infinity: a perplexity above 1e308 is null.
std::string number_as_json(double value) {
  return std::isfinite(value) ? fmt::format("{:.17g}", value) : "null";
}

// The bytes that the scored tokens spell: all but the first. If the first is the begin token of the
// tokenizer, these are all bytes of the text.
std::size_t scored_bytes(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool has_bos) {
  if (has_bos) return tokenizer.decode(ids.subspan(1)).size();
  const std::size_t all = tokenizer.decode(ids).size();
  // A tokenizer may remove text: then more tokens can spell less.
  return all - std::min(all, tokenizer.decode(ids.first(1)).size());
}

void run_perplexity(const PerplexityFlags& flags) {
  const ModelSource model = find_model(flags.model, "story");
  const std::string text = read_text_file(flags.text, kMaxTextBytes, Pipes::Read);
  check_utf8(flags.text, text);
  const Tokenizer tokenizer = Tokenizer::open(flags.tokenizer_source(model));
  std::vector<TokenId> ids = tokenizer.encode(text, {.add_special = true});
  const std::vector<TokenId> alone = tokenizer.encode("", {.add_special = true});
  const bool has_bos = !alone.empty() && !ids.empty() && ids.front() == alone.front();
  if (flags.max_tokens != 0 && flags.max_tokens < ids.size()) ids.resize(flags.max_tokens);
  if (ids.size() < 2) {
    throw Error("{}: expected a text of at least 2 tokens, found {}", flags.text, ids.size());
  }
  Engine engine = flags.open_engine(model);
  flags.check_tokenizer(tokenizer, model, engine.plan());
  check_tokens(flags.text, ids, flags.tokenizer_source(model), model, engine.plan());
  const Windows windows = windows_for(flags, engine.plan());
  note_long_context(engine.plan(), std::min(windows.context, ids.size()));

  const InterruptGuard guard;
  std::vector<double> nats;
  double seconds = 0.0;
  {
    const Progress progress(ids.size() - 1);
    nats = naming_the_model(model, [&] {
      return surprisals(engine, ids, windows, [&](std::size_t scored) {
        progress.show(scored);
        return !guard.interrupted();
      });
    });
    seconds = progress.seconds();
  }
  // A program that reads the JSON must not take the beginning of a text for all of it.
  if (guard.interrupted() && (nats.empty() || flags.json)) {
    print_note(flags.json ? "[interrupted: no JSON has been printed]" : "[interrupted]");
    guard.end_if_interrupted();
  }
  const std::size_t n_scored = ids.size() - 1;

  ids.resize(nats.size() + 1);
  const std::size_t bytes = scored_bytes(tokenizer, ids, has_bos);
  if (bytes == 0) throw Error("{}: expected tokens that spell text, found none", flags.text);
  const double sum = std::accumulate(nats.begin(), nats.end(), 0.0);
  const double perplexity = std::exp(sum / static_cast<double>(nats.size()));
  const double bits = sum / std::numbers::ln2 / static_cast<double>(bytes);
  if (flags.json) {
    fmt::print(
        "{{\"perplexity\": {}, \"bits_per_byte\": {}, \"nats\": {}, \"tokens\": {}, "
        "\"bytes\": {}, \"context\": {}, \"stride\": {}}}\n",
        number_as_json(perplexity), number_as_json(bits), number_as_json(sum), nats.size(), bytes,
        windows.context, windows.stride);
  } else {
    const std::string part =
        guard.interrupted() ? fmt::format(" (of the first {} of {} tokens)", nats.size(), n_scored)
                            : "";
    fmt::print("bits per byte  {:.4f}{}\nperplexity     {:.4f} per token{}\n", bits, part,
               perplexity, part);
  }
  if (guard.interrupted()) print_note("[interrupted]");
  print_note(fmt::format("[{}, {}; context {}, stride {}; {:.0f} tokens/s; {}]",
                         counted(nats.size(), "token"), counted(bytes, "byte"), windows.context,
                         windows.stride, static_cast<double>(nats.size()) / std::max(seconds, 1e-9),
                         model.name()));
  guard.end_if_interrupted();
}

}  // namespace

void add_perplexity(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("perplexity", "How well a model predicts a text, token by token");
  const auto flags = std::make_shared<PerplexityFlags>();
  flags->add_model_to(*command);
  flags->add_tokenizer_to(*command);
  command->add_option("--text,-f,--file", flags->text, "The text, UTF-8")
      ->required()
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("-c,--context", flags->context,
                   "Tokens in a window (default: 512, at most what the model was trained for)")
      ->check(whole_in_range(2, kMostTokens))
      ->type_name("N");
  command
      ->add_option("--stride", flags->stride,
                   "Tokens from the start of one window to the next (default: half the context)")
      ->check(whole_in_range(1, kMostTokens))
      ->type_name("N");
  command
      ->add_option("-n,--max-tokens", flags->max_tokens,
                   "Read only the first N tokens of the text (default: all)")
      ->check(whole_in_range(2, kMostTokens))
      ->type_name("N");
  flags->add_threads_to(*command);
  flags->add_backend_to(*command);
  command->add_flag("--json", flags->json, "Print one line of JSON, with all digits");
  command->footer(
      "Bits per byte compares any two models; perplexity only models with the same tokenizer.\n"
      "Example: stagecraft perplexity --model models/story --text stories.txt");
  command->callback([flags] { run_perplexity(*flags); });
}

}  // namespace stagecraft
