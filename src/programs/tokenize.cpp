#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "checkpoint/find_model.h"
#include "programs/console.h"
#include "programs/options.h"
#include "text/tokenizer.h"

namespace stagecraft {
namespace {

using nlohmann::json;

struct Options {
  std::optional<std::string> text;
  std::string model;
  bool jsonl = false;
  bool decode = false;
  bool plain = false;
  bool add_special = false;
};

// The text to encode, or the ids to decode.
struct Input {
  std::string text;
  bool is_argument;

  // Throws the error about a line: CLI::ValidationError if the command line holds the text.
  [[noreturn]] void refuse(std::size_t line, const std::string& problem) const {
    const std::string where = fmt::format("{}, line {}", is_argument ? "text" : "stdin", line);
    if (is_argument) throw CLI::ValidationError(where, problem);
    throw Error("{}: {}", where, problem);
  }
};

std::string read_stdin() {
  if (is_terminal(stdin)) print_note("[type a text, then Ctrl-D at the beginning of a line]");
  std::string text;
  char buffer[1 << 16];
  std::size_t n = sizeof buffer;
  while (n == sizeof buffer) {  // fewer: the end; at a terminal, another read would wait for a key
    n = std::fread(buffer, 1, sizeof buffer, stdin);
    text.append(buffer, n);
  }
  if (std::ferror(stdin) != 0) throw Error("stdin: cannot be read");
  return text;
}

void write_stdout(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) flush_stdout();  // throws
}

// Calls `handle` for each line of `text`, numbered from 1, without its newline. A newline at the
// end of `text` does not begin another line.
template <class Handle>
void for_each_line(std::string_view text, Handle handle) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    handle(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Reads a whole number. Returns nothing if `word` is none, and -1 if it is too large for an id.
std::optional<TokenId> parse_id(std::string_view word) {
  TokenId id = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error == std::errc::invalid_argument || end != word.data() + word.size()) return {};
  return id;
}

// word: the text of `id`.
TokenId check_id(const Tokenizer& tokenizer, const Input& input, TokenId id, std::string_view word,
                 std::size_t line) {
  if (id < 0 || static_cast<std::size_t>(id) >= tokenizer.vocab_size()) {
    input.refuse(line, fmt::format("expected token ids from 0 to {}, found {}",
                                   tokenizer.vocab_size() - 1, printable(word)));
  }
  return id;
}

// Ids, separated by commas, spaces, tabs or newlines.
std::vector<TokenId> read_ids(const Tokenizer& tokenizer, const Input& input) {
  std::vector<TokenId> ids;
  for_each_line(input.text, [&](std::string_view line, std::size_t number) {
    constexpr std::string_view kBetween = ", \t\r";
    while (!line.empty()) {
      const std::size_t begin = std::min(line.find_first_not_of(kBetween), line.size());
      line.remove_prefix(begin);
      if (line.empty()) break;
      const std::string_view word = line.substr(0, line.find_first_of(kBetween));
      const std::optional<TokenId> id = parse_id(word);
      if (!id) {
        input.refuse(number, fmt::format("expected token ids, found '{}'", printable(word)));
      }
      ids.push_back(check_id(tokenizer, input, *id, word, number));
      line.remove_prefix(word.size());
    }
  });
  return ids;
}

json parse_line(const Input& input, std::string_view line, std::size_t number,
                const char* expected) {
  if (const std::size_t at = utf8_error_offset(line); at != std::string_view::npos) {
    input.refuse(number, fmt::format("expected UTF-8, found the byte 0x{:02x} at offset {}",
                                     static_cast<unsigned char>(line[at]), at));
  }
  json value = json::parse(line, nullptr, /*allow_exceptions=*/false);
  // The parser takes a zero byte for the end.
  if (value.is_discarded() || line.find('\0') != std::string_view::npos) {
    input.refuse(number, fmt::format("expected {}, found '{}'", expected, printable(line)));
  }
  return value;
}

std::string joined(const std::vector<TokenId>& ids) {
  return fmt::format("{}", fmt::join(ids, ","));
}

std::vector<TokenId> encode(const Tokenizer& tokenizer, std::string_view text,
                            const Options& options) {
  return tokenizer.encode(text,
                          {.parse_special = !options.plain, .add_special = options.add_special});
}

void encode_text(const Tokenizer& tokenizer, const Input& input, const Options& options) {
  const std::string& text = input.text;
  if (const std::size_t at = utf8_error_offset(text); at != std::string_view::npos) {
    const auto begin = text.begin(), error = begin + static_cast<std::ptrdiff_t>(at);
    input.refuse(static_cast<std::size_t>(1 + std::count(begin, error, '\n')),
                 fmt::format("expected UTF-8, found the byte 0x{:02x} at offset {} of the input",
                             static_cast<unsigned char>(text[at]), at));
  }
  write_stdout(joined(encode(tokenizer, text, options)) + "\n");
}

void encode_lines(const Tokenizer& tokenizer, const Input& input, const Options& options) {
  for_each_line(input.text, [&](std::string_view line, std::size_t number) {
    const json value = parse_line(input, line, number, "a JSON string");
    if (!value.is_string()) {
      input.refuse(number, fmt::format("expected a JSON string, found '{}'", printable(line)));
    }
    const auto& string = value.get_ref<const std::string&>();
    write_stdout("[" + joined(encode(tokenizer, string, options)) + "]\n");
  });
}

void decode_lines(const Tokenizer& tokenizer, const Input& input) {
  for_each_line(input.text, [&](std::string_view line, std::size_t number) {
    const json value = parse_line(input, line, number, "a JSON array of token ids");
    const auto is_id = [](const json& element) { return element.is_number_integer(); };
    if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_id)) {
      input.refuse(number,
                   fmt::format("expected a JSON array of token ids, found '{}'", printable(line)));
    }
    std::vector<TokenId> ids;
    for (const json& element : value) {
      const std::string word = element.dump();
      ids.push_back(check_id(tokenizer, input, parse_id(word).value(), word, number));
    }
    write_stdout(json(utf8_with_replacements(tokenizer.decode(ids))).dump() + "\n");
  });
}

void run(const Options& options) {
  const ModelSource model = find_model(options.model, "story");
  const Tokenizer tokenizer = Tokenizer::open(model);
  const Input input = options.text ? Input{*options.text, true} : Input{read_stdin(), false};
  if (options.decode && options.jsonl) {
    decode_lines(tokenizer, input);
  } else if (options.decode) {
    write_stdout(tokenizer.decode(read_ids(tokenizer, input)));
  } else if (options.jsonl) {
    encode_lines(tokenizer, input, options);
  } else {
    encode_text(tokenizer, input, options);
  }
}

}  // namespace

void add_tokenize(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids, and back");
  auto options = std::make_shared<Options>();
  command->add_option("text", options->text, "The text to tokenize; without it, all of stdin")
      ->type_name("TEXT");
  command
      ->add_option(
          "-m,--model", options->model,
          "A model, or a folder with only a tokenizer.json or tokenizer.model, or one of these "
          "files (default: the story model)")
      ->check(not_empty())
      ->type_name("PATH");
  command->add_flag("--jsonl", options->jsonl,
                    "Read one JSON string per line, write one array of ids per line");
  command->add_flag("--decode", options->decode,
                    "Turn ids into text: exactly its bytes, no newline added");
  command->add_flag("--plain", options->plain, "Read the text of a special token as ordinary text");
  command->add_flag("--add-special", options->add_special,
                    "Add the special tokens around a text, such as begin-of-text");
  command->footer(
      "The text, or all of stdin with its last newline, becomes ids on one line:\n"
      "  stagecraft tokenize 'Once upon a time' --model models/story\n"
      "and back:\n"
      "  stagecraft tokenize 80,147,201 --model models/story --decode");
  command->callback([options] { run(*options); });
}

}  // namespace stagecraft
