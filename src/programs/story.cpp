#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/ranges.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/number.h"
#include "base/stopwatch.h"
#include "checkpoint/find_model.h"
#include "generation/generate_batch.h"
#include "generation/generate_text.h"
#include "generation/visible_text.h"
#include "operators/kernels/kernels.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/model_path.h"
#include "programs/options.h"
#include "programs/read_grammar.h"

namespace stagecraft {
namespace {

constexpr const char* kDefaultPrompt = "Once upon a time";
constexpr std::size_t kDefaultMaxTokens = 400;

struct StoryFlags : GenerationFlags {
  TextFlags prompt = {.text = kDefaultPrompt};
  std::string ids;
  CLI::Option* ids_option = nullptr;
  bool print_ids = false;
  std::string save_ids;
  std::size_t stories = 1;

  bool has_ids() const { return ids_option->count() > 0; }
};

std::size_t context_for(const StoryFlags& flags, const Plan& plan, std::size_t prompt_tokens,
                        std::size_t max_tokens) {
  const std::size_t context =
      flags.context != 0 ? flags.context : std::min(plan.max_seq_len, prompt_tokens + max_tokens);
  if (prompt_tokens > context) {
    throw Error("prompt: expected at most {} tokens (the context), found {}", context,
                prompt_tokens);
  }
  return context;
}

// Names the kernels that ran, if STAGECRAFT_ISA chose them.
std::string forced_kernels(const Engine& engine) {
  if (engine.options().backend != BackendKind::Cpu || std::getenv("STAGECRAFT_ISA") == nullptr)
    return "";
  return fmt::format("; kernels {}", kernels().name);
}

void print_closing_lines(const TextResult& result, const Session& session,
                         const std::filesystem::path& model, std::uint64_t seed) {
  if (result.reason == StopReason::ContextFull) {
    print_note(fmt::format("[the context of {} tokens is full]", session.context()));
  }
  print_note(fmt::format("[{}; prompt {}; first token after {:.0f} ms; {}; {}{}; seed {}]",
                         tokens_text(result.tokens.size(), result.generation_seconds),
                         tokens_text(result.prompt_tokens, result.prompt_seconds),
                         result.first_token_seconds * 1e3, model.string(),
                         counted(session.n_threads(), "thread"), forced_kernels(session.engine()),
                         seed));
}

// The file for the ids of the new tokens. It is opened before the story begins, so that a path that
// cannot be written throws before, and not when the story is over. It is no AtomicFile, because
// course/grading/score.py lets a student's program write this one file and no other.
class IdsFile {
 public:
  explicit IdsFile(const std::string& path) : path_(path) {
    if (path_.empty()) return;
    refuse_other_kinds(path_, std::filesystem::file_type::regular);
    file_.open(path_, std::ios::binary | std::ios::app);  // keeps what the file holds until write()
    if (!file_) refuse();
  }
  void write(const std::vector<TokenId>& ids) {
    if (path_.empty()) return;
    file_.close();
    file_.open(path_, std::ios::binary | std::ios::trunc);
    file_ << fmt::format("{}\n", fmt::join(ids, ","));
    file_.close();
    if (!file_) refuse();
  }

 private:
  [[noreturn]] void refuse() const {
    throw Error("{}: cannot be written: {}", printable(path_, 1000), std::strerror(errno));
  }

  std::string path_;
  std::ofstream file_;
};

// --ids with --print-ids: text is neither read nor printed, so no tokenizer is needed.
void run_on_ids(const StoryFlags& flags, Engine& engine, const std::vector<TokenId>& prompt) {
  const TextOptions options = flags.text_options(engine.plan(), kDefaultMaxTokens);
  Session session(engine,
                  context_for(flags, engine.plan(), prompt.size(), options.generation.max_tokens));
  note_long_context(engine.plan(), session.context());
  IdsFile ids_file(flags.save_ids);
  Random random(flags.chosen_seed());
  std::vector<TokenId> made;
  session.feed(prompt);
  generate_tokens(session, options, random, [&](TokenId token) {
    made.push_back(token);
    return true;
  });
  fmt::print("{}\n", fmt::join(made, ","));
  ids_file.write(made);
}

// --stories N: generates them together and prints them one after the other. Each is the story that
// its seed gives alone.
void tell_several(const StoryFlags& flags, const std::string& begin, Engine& engine,
                  const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                  const TextOptions& options, std::size_t context, std::uint64_t seed) {
  std::vector<Random> randoms;
  for (std::size_t i = 0; i < flags.stories; ++i) randoms.emplace_back(seed + i);
  struct Story {
    std::string text;
    VisibleText visible;
    bool ended = false;
  };
  std::vector<Story> stories;
  for (std::size_t i = 0; i < flags.stories; ++i) {
    stories.push_back({begin, VisibleText(tokenizer, prompt, options.stops)});
  }
  std::size_t shown = 0;
  std::size_t tokens = 0;
  const InterruptGuard guard;
  const Stopwatch watch;
  const auto on_token = [&](std::size_t which, TokenId token) {
    ++tokens;
    stories[which].text += stories[which].visible.push(token);
    return !stories[which].visible.stopped() && !guard.interrupted();
  };
  const auto on_done = [&](std::size_t which, StopReason reason) {
    Story& story = stories[which];
    if (reason != StopReason::Stopped) story.text += story.visible.finish();
    story.ended = true;
    for (; shown < stories.size() && stories[shown].ended; ++shown) {
      TextPrinter().print(fmt::format("{}{}\n", shown == 0 ? "" : "\n", stories[shown].text));
    }
  };
  generate_batch(engine, context, prompt, options.generation, options.rules, randoms, on_token,
                 on_done, [&] { return !guard.interrupted(); });
  print_note(fmt::format("[{} stories, {} in all; {}; seeds {} to {}]", flags.stories,
                         tokens_text(tokens, watch.seconds()),
                         counted(engine.n_threads(), "thread"), seed, seed + flags.stories - 1));
  guard.end_if_interrupted();
}

void run_story(const StoryFlags& flags) {
  const std::string begin = flags.prompt.read();
  std::vector<TokenId> prompt;
  if (flags.has_ids()) prompt = parse_id_list("--ids", flags.ids);

  const ModelSource model = find_model(flags.model, "story");
  if (!flags.save_ids.empty()) refuse_model_file(flags.save_ids, model);
  Engine engine = flags.open_engine(model);
  check_ids("--ids", prompt, engine.plan().vocab_size);
  const bool reads_text =
      !flags.grammar.empty() || !flags.json_schema.empty() || !flags.stops.empty();
  if (flags.has_ids() && flags.print_ids && !reads_text) {
    return naming_the_model(model, [&] { run_on_ids(flags, engine, prompt); });
  }

  const Tokenizer tokenizer = Tokenizer::open(flags.tokenizer_source(model));
  flags.check_tokenizer(tokenizer, model, engine.plan());
  if (!flags.has_ids()) {
    prompt = tokenizer.encode(begin, {.add_special = true});
    check_tokens("prompt", prompt, flags.tokenizer_source(model), model, engine.plan());
  }
  TextOptions options = flags.text_options(engine.plan(), kDefaultMaxTokens);
  options.grammar = read_grammar(flags.grammar, flags.json_schema, tokenizer);
  const std::size_t context =
      context_for(flags, engine.plan(), prompt.size(), options.generation.max_tokens);
  note_long_context(engine.plan(), context);
  const std::uint64_t seed = flags.chosen_seed();
  if (flags.stories > 1)
    return naming_the_model(model, [&] {
      tell_several(flags, begin, engine, tokenizer, prompt, options, context, seed);
    });
  Session session(engine, context);
  Random random(seed);
  IdsFile ids_file(flags.save_ids);

  const InterruptGuard guard;
  TextPrinter printer;
  const auto show = [&](std::string_view text) {
    if (!flags.print_ids) printer.print(text);
    return !guard.interrupted();
  };
  show(!flags.has_ids() ? begin : tokenizer.decode(prompt));
  const TextResult result = naming_the_model(
      model, [&] { return generate_text(tokenizer, session, prompt, options, random, show); });
  if (flags.print_ids) print_now(fmt::format("{}\n", fmt::join(result.tokens, ",")));
  printer.end_line();
  ids_file.write(result.tokens);
  print_closing_lines(result, session, model.path(), seed);
  guard.end_if_interrupted();
}

}  // namespace

void add_story(CLI::App& app) {
  CLI::App* command = app.add_subcommand("story", "Tell a story");
  const auto flags = std::make_shared<StoryFlags>();
  flags->prompt.add_to(*command, "prompt", "How the story begins");
  flags->prompt.text_option->capture_default_str();
  flags->add_to(*command, std::to_string(kDefaultMaxTokens),
                "the prompt and -n, at most what the model was trained for");
  flags->add_grammar_to(*command);
  flags->ids_option =
      command->add_option("--ids", flags->ids, "Begin with these token ids instead of a prompt")
          ->excludes(flags->prompt.text_option)
          ->excludes(flags->prompt.file_option)
          ->type_name("1,2,3");
  command->add_flag("--print-ids", flags->print_ids, "Print only the ids of the new tokens");
  command
      ->add_option("--save-ids", flags->save_ids,
                   "Also write the ids of the new tokens to this file, as --ids takes them")
      ->check(not_empty())
      ->type_name("FILE");
  command
      ->add_option("--stories", flags->stories,
                   "Tell N stories at the same time; each uses the next seed")
      ->check(whole_in_range(1, 512))
      ->excludes(flags->ids_option)
      ->excludes("--print-ids")
      ->excludes("--save-ids")
      ->excludes("--grammar")
      ->excludes("--json-schema")
      ->type_name("N");
  command->footer("Example: stagecraft story \"One day, a small fox\" --seed 7 --temperature 0.8");
  command->callback([flags] { run_story(*flags); });
}

}  // namespace stagecraft
