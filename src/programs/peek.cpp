#include "inspection/peek.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/number.h"
#include "checkpoint/find_model.h"
#include "generation/ranking.h"
#include "programs/model_path.h"
#include "programs/options.h"
#include "programs/terminal.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMinColumns = 40;  // a narrower terminal breaks the lines
constexpr std::size_t kLabelWidth = 14;  // columns of a token's label; longer ones are cut
constexpr std::size_t kShortLabel = 6;   // the same, beside a picture that needs the space

struct PeekFlags : ModelFlags, EngineFlags {
  std::string text;
  std::size_t top = 5;
  std::size_t max = 16;
  std::string attention;
};

// "0.3": layer 0, head 3.
std::optional<HeadIndex> parse_head(const std::string& text, const Plan& plan) {
  if (text.empty()) return std::nullopt;
  const std::size_t dot = std::min(text.find('.'), text.size());
  const std::string_view of_head = std::string_view(text).substr(std::min(dot + 1, text.size()));
  const auto layer = integer_of<std::size_t>(text.substr(0, dot));
  const auto number = integer_of<std::size_t>(of_head);
  if (!layer || !number) {
    throw CLI::ValidationError(
        "--attention", fmt::format("expected LAYER.HEAD as in 0.3, found '{}'", printable(text)));
  }
  const HeadIndex head{*layer, *number};
  const bool has_layer = head.layer < plan.n_layers;
  const AttentionStep* const attention =
      has_layer ? attention_of(plan, static_cast<int>(head.layer)) : nullptr;
  if (has_layer && attention == nullptr) {
    throw CLI::ValidationError(
        "--attention", fmt::format("expected a layer with attention, found {}: layer {} has no "
                                   "attention",
                                   printable(text), head.layer));
  }
  const std::size_t n_heads = has_layer ? attention->n_heads : max_heads(plan);
  if (!has_layer || head.head >= n_heads) {
    throw CLI::ValidationError(
        "--attention",
        fmt::format("expected a layer from 0 to {} and a head from 0 to {}, found {}",
                    plan.n_layers - 1, n_heads - 1, printable(text)));
  }
  return head;
}

// The labels of tokens for people to read.
class Labels {
 public:
  Labels(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool utf8)
      : tokenizer_(tokenizer), ids_(ids), utf8_(utf8) {}

  // The text that `token` adds after `position`. Some tokenizers write the space at the start of a
  // word only if text stands before it.
  std::string after(std::size_t position, TokenId token) const {
    if (!exists(token)) return "(no token)";
    const TokenId before = ids_[position];
    if (!exists(before) || tokenizer_.is_special(before))
      return label(tokenizer_.decode({&token, 1}));
    const std::vector<TokenId> pair = {before, token};
    const std::string alone = tokenizer_.decode({&before, 1});
    const std::string both = tokenizer_.decode(pair);
    return label(both.starts_with(alone) ? both.substr(alone.size())
                                         : tokenizer_.decode({&token, 1}));
  }

  std::string at(std::size_t position) const {
    if (position > 0) return after(position - 1, ids_[position]);
    return exists(ids_[0]) ? label(tokenizer_.decode(ids_.first(1))) : "(no token)";
  }

 private:
  // False for ids without a token: a model may have more rows than its tokenizer has tokens.
  bool exists(TokenId id) const {
    return static_cast<std::size_t>(id) < tokenizer_.vocab_size() &&
           !tokenizer_.token_of(id).empty();
  }
  std::string label(std::string_view text) const {
    return cut_to(visible(text, utf8_), kLabelWidth, utf8_);
  }

  const Tokenizer& tokenizer_;
  std::span<const TokenId> ids_;
  bool utf8_;
};

// Prints the tokens side by side, each above its id.
void print_tokens(const Labels& labels, std::span<const TokenId> ids, const Terminal& terminal) {
  std::string tokens;
  std::string numbers;
  std::size_t width = 0;
  const auto print_line = [&] {
    fmt::print("{}\n{}\n\n", tokens, terminal.dim(numbers));
    tokens.clear();
    numbers.clear();
    width = 0;
  };
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::string label = labels.at(i);
    const std::string number = std::to_string(ids[i]);
    const std::size_t columns = std::max(display_width(label), number.size()) + 2;
    if (width != 0 && width + columns > terminal.width) print_line();
    tokens += pad_left(label, columns);
    numbers += pad_left(number, columns);
    width += columns;
  }
  print_line();
}

void print_guess(const std::string& label, RankedToken guess, bool is_next, const std::string& note,
                 const Terminal& terminal) {
  const std::size_t columns = terminal.width - kLabelWidth - 20;
  const std::string line =
      fmt::format("{} {}{:>8}{:>7.1f}%  ", is_next ? (terminal.utf8 ? "▸" : ">") : " ",
                  pad_right(label, kLabelWidth), guess.token, guess.value * 100.0f);
  const std::string rest =
      note.empty() ? bar(static_cast<double>(guess.value), columns, terminal.utf8) : note;
  fmt::print("{}{}\n", is_next ? terminal.bold(line) : line, rest);
}

// Prints the likeliest next tokens after each of the last positions, and the token that follows in
// the text.
void print_guesses(const Peek& peek, const Labels& labels, std::span<const TokenId> ids,
                   std::size_t top, const Terminal& terminal) {
  const std::size_t shown = peek.next.rows();
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t position = ids.size() - shown + i;
    const auto probabilities = peek.next.view().row(i);
    const bool is_last = position + 1 == ids.size();
    const TokenId next = is_last ? -1 : ids[position + 1];

    fmt::print("after {}\n", terminal.bold(labels.at(position)));
    bool found = is_last;
    for (const RankedToken& guess : top_tokens(probabilities, top)) {
      print_guess(labels.after(position, guess.token), guess, guess.token == next, "", terminal);
      found = found || guess.token == next;
    }
    if (!found) {
      const float probability = probabilities[static_cast<std::size_t>(next)];
      print_guess(labels.after(position, next), {next, probability}, true,
                  fmt::format("rank {}", rank_of(probabilities, next) + 1), terminal);
    }
    fmt::print("\n");
  }
}

// Each row is a query, each column a key. A token's label is at the end of its row and above its
// column.
void print_attention(const Peek& peek, HeadIndex head, const Labels& labels,
                     const Terminal& terminal) {
  constexpr std::array<std::string_view, 5> kShades = {"·", "░", "▒", "▓", "█"};
  constexpr std::array<std::string_view, 5> kPlain = {".", "-", "+", "x", "#"};
  const auto& shades = terminal.utf8 ? kShades : kPlain;
  const auto shade_of = [&](float probability) {
    constexpr std::array<float, 4> kFrom = {0.05f, 0.25f, 0.5f, 0.75f};
    return shades[static_cast<std::size_t>(std::count_if(
        kFrom.begin(), kFrom.end(), [&](float from) { return probability >= from; }))];
  };

  const std::size_t n = peek.attention.rows();
  const auto room_beside = [&](std::size_t label) { return terminal.width - 2 * label - 12; };
  std::size_t label_width = kLabelWidth;
  while (label_width > kShortLabel && n > room_beside(label_width)) --label_width;
  const std::size_t room = room_beside(label_width);
  const std::size_t cell = n * 2 <= room ? 2 : 1;
  const std::size_t columns = std::min(n, room / cell);
  const std::size_t first = n - columns;
  const auto padding = [&](std::size_t i, const std::string& label) {
    return std::string((n - 1 - i) * cell + label_width - display_width(label), ' ');
  };
  const auto label_of = [&](std::size_t i) {
    return cut_to(labels.at(i), label_width, terminal.utf8);
  };
  fmt::print("layer {}, head {}: how much each token attends to itself and to those before it\n",
             head.layer, head.head);
  fmt::print(
      "{} under 5%  {} 5%  {} 25%  {} 50%  {} 75%; at the end: the token it attends to most\n\n",
      shades[0], shades[1], shades[2], shades[3], shades[4]);
  for (std::size_t i = first; i < n; ++i) {
    const auto row = peek.attention.view().row(i);
    std::string line = "  ";
    for (std::size_t j = first; j <= i; ++j) {
      for (std::size_t k = 0; k < cell; ++k) line += shade_of(row[j]);
    }
    const auto most =
        static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
    const std::string label = label_of(i);
    fmt::print("{} {}{}\n", line, terminal.bold(label),
               terminal.dim(fmt::format("{}  {:3.0f}% {}", padding(i, label), row[most] * 100.0f,
                                        label_of(most))));
  }
  if (first != 0) fmt::print("\n(the first {} of {} tokens do not fit)\n", first, n);
}

void run_peek(const PeekFlags& flags) {
  const ModelSource model = find_model(flags.model, "story");
  check_text("text", flags.text);
  Engine engine = flags.open_observed(model);
  const Tokenizer tokenizer = Tokenizer::open(flags.tokenizer_source(model));
  flags.check_tokenizer(tokenizer, model, engine.plan());
  const std::optional<HeadIndex> head = parse_head(flags.attention, engine.plan());
  const std::vector<TokenId> ids = tokenizer.encode(flags.text, {.add_special = true});
  check_tokens("text", ids, flags.tokenizer_source(model), model, engine.plan());
  if (ids.size() > engine.plan().max_seq_len) {
    throw Error("text: expected at most {} tokens (the context), found {}",
                engine.plan().max_seq_len, ids.size());
  }
  const std::size_t shown = std::min(ids.size(), flags.max);
  const Peek result =
      naming_the_model(model, [&] { return peek(engine, ids, shown, head ? &*head : nullptr); });

  Terminal terminal = Terminal::of_stdout();
  terminal.width = std::max(terminal.width, kMinColumns);
  const Labels labels(tokenizer, ids, terminal.utf8);
  print_tokens(labels, ids, terminal);
  if (flags.top != 0) {
    if (shown < ids.size()) {
      fmt::print("(the last {} of {} positions; --max {} shows all)\n\n", shown, ids.size(),
                 ids.size());
    }
    print_guesses(result, labels, ids, flags.top, terminal);
  }
  if (head) print_attention(result, *head, labels, terminal);
}

}  // namespace

void add_peek(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("peek", "See the likeliest next tokens, and which token attends to which");
  const auto flags = std::make_shared<PeekFlags>();
  command->add_option("text", flags->text, "The text that the model reads")
      ->required()
      ->type_name("TEXT");
  flags->add_model_to(*command);
  flags->add_tokenizer_to(*command);
  command
      ->add_option("--top", flags->top,
                   "Show the K likeliest next tokens after each token; 0: none")
      ->check(whole_in_range(0, 1000))
      ->capture_default_str()
      ->type_name("K");
  command->add_option("--max", flags->max, "Show them only after the last N tokens")
      ->check(whole_in_range(1, 1'000'000))
      ->capture_default_str()
      ->type_name("N");
  command->add_option("--attention", flags->attention, "Draw the attention weights of one head")
      ->check(not_empty("LAYER.HEAD as in 0.3"))
      ->type_name("LAYER.HEAD");
  flags->add_threads_to(*command);
  command->footer("Example: stagecraft peek \"Once upon a\" --attention 0.1");
  command->callback([flags] { run_peek(*flags); });
}

}  // namespace stagecraft
