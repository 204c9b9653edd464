#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/number.h"
#include "base/utf8.h"
#include "checkpoint/find_model.h"
#include "generation/chat_session.h"
#include "generation/text_memory.h"
#include "programs/chat_options.h"
#include "programs/console.h"
#include "programs/interrupt.h"
#include "programs/line_editor.h"
#include "programs/model_path.h"
#include "programs/options.h"
#include "programs/read_grammar.h"
#include "text/builtin_chat_templates.h"

namespace stagecraft {
namespace {

constexpr std::size_t kDefaultMaxTokens = 256;
constexpr std::size_t kMaxFileBytes = 64 << 20;
constexpr std::string_view kBlock = "\"\"\"";

struct ChatFlags : GenerationFlags {
  TextFlags question;
  std::string system;
  std::string chat_template;
  std::string template_variables;
  bool verbose = false;
};

constexpr const char* kHelp =
    R"(/reset         forget the conversation; the system prompt stays
/system TEXT   set the system prompt; without TEXT, remove it
/retry         answer the last question again, differently
/undo          take back the last question and its answer
/save FILE     save the conversation to a file
/load FILE     continue a conversation from a file
/help          this list
/quit          leave; so do Ctrl-D, and Ctrl-C on an empty line
""" opens and closes a message of several lines, or one that begins with /.
A pasted text is one message, sent by Enter. Ctrl-C stops an answer.)";

// Sums over all answers, for the closing line.
struct Totals {
  std::size_t answers = 0, tokens = 0, prompt_tokens = 0;
  double seconds = 0.0, prompt_seconds = 0.0;

  void add(const TextResult& result) {
    answers += 1;
    tokens += result.tokens.size();
    prompt_tokens += result.prompt_tokens;
    seconds += result.generation_seconds;
    prompt_seconds += result.prompt_seconds;
  }
  std::string text() const {
    return fmt::format("{}; prompt {}", tokens_text(tokens, seconds),
                       tokens_text(prompt_tokens, prompt_seconds));
  }
};

// The path, or the path relative to the working directory if that is not longer.
std::string short_name(const std::filesystem::path& path) {
  std::error_code failed;
  const std::string from_here = std::filesystem::proximate(path, failed).string();
  return failed || from_here.size() > path.string().size() ? path.string() : from_here;
}

class Chat {
 public:
  Chat(const ChatFlags& flags, const ModelSource& model, const Tokenizer& tokenizer,
       ChatFormat format, Engine& engine)
      : flags_(flags),
        model_(model),
        name_(short_name(model.path())),
        options_(flags.text_options(engine.plan(), kDefaultMaxTokens)),
        seed_(flags.chosen_seed()),
        random_(seed_),
        session_(engine, tokenizer, std::move(format), flags.context_for(engine.plan())) {
    note_long_context(engine.plan(), session_.session().context());
    note_guessed_template();
    options_.grammar = read_grammar(flags.grammar, flags.json_schema, tokenizer);
    if (!flags.system.empty()) session_.conversation().system = flags.system;
  }

  void ask(const std::string& question) {
    answer([&](const ChatSession::Listener& listener) {
      return session_.say(question, options_, random_, listener);
    });
  }

  // Reads messages and commands, one per line, until the end of the input. Returns the exit code.
  int converse() {
    interactive_ = editor_.is_interactive();
    if (interactive_) {
      print_note(fmt::format("[{}; context {} tokens; /help lists the commands]", name_,
                             session_.session().context()));
      if (flags_.model.empty()) {
        print_note("[a small model; ./stage pull smollm2-135m brings a larger one, 98 MB]");
      }
    }
    bool failed = false;
    while (!done_) {
      std::string message;
      try {
        if (read_message(message)) ask(message);
      } catch (const Error& error) {
        print_error(error.what());
        failed = true;
      }
    }
    if (std::ferror(stdin) != 0) throw Error("stdin: cannot be read");
    return failed && !interactive_ ? 1 : 0;
  }

  void print_closing_line() const {
    if (totals_.answers == 0) return;
    const std::size_t threads = session_.session().n_threads();
    print_note(fmt::format("[{}: {}; {}; {}; seed {}]", counted(totals_.answers, "answer"),
                           totals_.text(), name_, counted(threads, "thread"), seed_));
  }

 private:
  void note_guessed_template() const {
    const ChatFormat& format = session_.format();
    if (!flags_.chat_template.empty() || format.is_chatml()) return;
    if (find_builtin_chat_template(format.name()) == nullptr) return;
    print_note(
        fmt::format("note: the model has no chat template; its vocabulary fits {} (--chat-template "
                    "sets another)",
                    format.name()));
  }

  // Generates one answer, and prints it while it is generated.
  void answer(const std::function<TextResult(const ChatSession::Listener&)>& run) {
    const InterruptGuard guard;
    const NoEcho no_echo;
    TextPrinter printer;
    bool began = false;
    std::size_t forgotten = 0;
    const ChatSession::Listener listener = {
        .on_text =
            [&](std::string_view text) {
              printer.print(text);
              began |= !text.empty();
              return !guard.interrupted();
            },
        .on_forgotten = [&](std::size_t exchanges) { forgotten = exchanges; },
    };
    const TextResult result = naming_the_model(model_, [&] { return run(listener); });
    totals_.add(result);
    if (!began) print_now("\n");
    printer.end_line();
    if (forgotten > 0) {
      print_note(fmt::format("[the context of {} tokens is full: forgot the oldest {}]",
                             session_.session().context(),
                             forgotten == 1 ? "exchange" : fmt::format("{} exchanges", forgotten)));
    }
    print_remarks(result, guard.interrupted(), began);
    if (interactive_) print_now("\n");
    if (guard.interrupted() && !interactive_) {
      print_closing_line();
      guard.end_if_interrupted();
    }
  }

  void print_remarks(const TextResult& result, bool interrupted, bool began) const {
    if (interrupted) {
      print_note(began ? "[stopped]" : "[stopped before the answer began: nothing has changed]");
    } else if (result.reason == StopReason::MaxTokens) {
      print_note(
          fmt::format("[cut after {}: --max-tokens]", counted(result.tokens.size(), "token")));
    } else if (result.reason == StopReason::ContextFull) {
      print_note(
          fmt::format("[cut: the context of {} tokens is full]", session_.session().context()));
    }
    if (flags_.verbose) {
      Totals one;
      one.add(result);
      print_note(fmt::format("[{}; first token after {:.0f} ms]", one.text(),
                             result.first_token_seconds * 1e3));
    }
  }

  // Returns false if there is no message to answer: after an empty line, a command, or the end.
  bool read_message(std::string& message) {
    std::string problem;
    const LineEditor::Status status = read_line(">", message, problem);
    if (status != LineEditor::Status::Line) {
      done_ = true;
      return false;
    }
    const std::size_t begin = message.find_first_not_of(" \t");
    if (begin == std::string::npos) return false;
    const bool is_block = message.compare(begin, kBlock.size(), kBlock) == 0;
    if (is_block) {
      message.erase(0, begin + kBlock.size());
      if (!read_block(message, problem)) return false;
    }
    if (!problem.empty()) throw Error(problem);
    if (is_block) return true;
    const bool is_pasted = message.find('\n') != std::string::npos;  // several lines
    if (message[begin] == '/' && !is_pasted) {
      run_command(std::string_view(message).substr(begin));
      return false;
    }
    return true;
  }

  // `message` holds the text after the opening """. Reads on, up to the closing one.
  bool read_block(std::string& message, std::string& problem) {
    while (!message.ends_with(kBlock)) {
      std::string line;
      const LineEditor::Status status = read_line(".", line, problem);
      if (status == LineEditor::Status::Interrupted) return false;  // drop this message
      if (status == LineEditor::Status::End) {
        done_ = true;
        return !interactive_ && !message.empty();
      }
      message += (message.empty() ? "" : "\n") + line;
    }
    message.resize(message.size() - kBlock.size());
    if (message.ends_with('\n')) message.pop_back();
    return message.find_first_not_of(" \t\n") != std::string::npos;
  }

  // If the line is not UTF-8 and `problem` is empty, `problem` becomes the message about it: a
  // block is read to its end before the error is thrown, so that the rest of it is not taken for
  // questions.
  LineEditor::Status read_line(const std::string& marker, std::string& line, std::string& problem) {
    const LineEditor::Status status = editor_.read(marker, line);
    if (status != LineEditor::Status::Line) return status;
    ++line_number_;
    try {
      check_utf8(interactive_ ? "message" : fmt::format("stdin, line {}", line_number_), line);
    } catch (const Error& error) {
      if (problem.empty()) problem = error.what();
    }
    return status;
  }

  void run_command(std::string_view line) {
    const std::string_view name = line.substr(0, line.find_first_of(" \t"));
    line.remove_prefix(name.size());
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    const std::string argument(line.substr(0, line.find_last_not_of(" \t") + 1));
    struct Command {
      std::string_view name;
      void (Chat::*run)(const std::string& argument);
      bool has_argument = false;
    };
    static constexpr Command kCommands[] = {
        {"/reset", &Chat::reset},     {"/system", &Chat::set_system, true},
        {"/retry", &Chat::retry},     {"/undo", &Chat::undo},
        {"/save", &Chat::save, true}, {"/load", &Chat::load, true},
        {"/help", &Chat::help},       {"/quit", &Chat::quit},
        {"/exit", &Chat::quit},
    };
    const auto command = std::ranges::find(kCommands, name, &Command::name);
    if (command == std::end(kCommands)) {
      throw Error("{}: no such command; /help lists them", printable(name, 40));
    }
    if (!command->has_argument && !argument.empty()) {
      throw Error("{}: expected nothing after it, found '{}'", name, printable(argument, 40));
    }
    (this->*command->run)(argument);
  }

  void quit(const std::string&) { done_ = true; }
  void help(const std::string&) { print_note(kHelp); }

  void reset(const std::string&) {
    session_.conversation().exchanges.clear();
    print_note("[forgotten; a new conversation]");
  }

  void set_system(const std::string& text) {
    session_.conversation().system = text.empty() ? std::nullopt : std::optional(text);
    print_note(text.empty() ? "[no system prompt]" : "[system prompt set]");
  }

  void retry(const std::string&) {
    answer([&](const ChatSession::Listener& listener) {
      return session_.retry(options_, random_, listener);
    });
  }

  void undo(const std::string&) {
    auto& exchanges = session_.conversation().exchanges;
    if (exchanges.empty()) throw Error("/undo: there is nothing to take back");
    print_note(fmt::format("[taken back: {}]", printable(exchanges.back().question, 50)));
    exchanges.pop_back();
  }

  static std::filesystem::path file_named(std::string_view command, const std::string& argument) {
    if (argument.empty()) throw Error("{}: expected the name of a file, found none", command);
    const char* home = std::getenv("HOME");
    if (argument.starts_with("~/") && home != nullptr) return home + argument.substr(1);
    return argument;
  }

  void save(const std::string& argument) {
    const std::filesystem::path file = file_named("/save", argument);
    refuse_model_file(file, model_);
    AtomicFile out(file, true);
    out.write(to_json(session_.conversation()));
    out.commit();
    print_note(fmt::format("[saved to {}]", printable(file.string())));
  }

  void load(const std::string& argument) {
    const std::filesystem::path file = file_named("/load", argument);
    session_.conversation() =
        parse_conversation(read_text_file(file, kMaxFileBytes), printable(file.string()));
    const std::size_t n = session_.conversation().exchanges.size();
    print_note(fmt::format("[{}{}]", counted(n, "exchange"),
                           session_.conversation().system ? " and a system prompt" : ""));
  }

  const ChatFlags& flags_;
  const ModelSource& model_;
  std::string name_;
  TextOptions options_;
  std::uint64_t seed_;
  Random random_;
  ChatSession session_;
  LineEditor editor_;
  Totals totals_;
  std::size_t line_number_ = 0;
  bool interactive_ = false;  // a person types the messages at a terminal
  bool done_ = false;
};

void run_chat(const ChatFlags& flags) {
  std::optional<std::string> question;
  if (flags.question.is_given()) question = flags.question.read();
  check_text("--system", flags.system);
  const ModelSource model = find_model(flags.model, "chat");
  const Tokenizer tokenizer = Tokenizer::open(flags.tokenizer_source(model));
  ChatFormat format =
      open_chat_format(model, tokenizer, flags.chat_template, flags.template_variables,
                       local_time());  // a conversation has one date
  Engine engine = flags.open_engine(model);
  flags.check_tokenizer(tokenizer, model, engine.plan());

  Chat chat(flags, model, tokenizer, std::move(format), engine);
  int code = 0;
  if (question) {
    chat.ask(*question);
  } else {
    code = chat.converse();
  }
  chat.print_closing_line();
  if (code != 0) throw CLI::RuntimeError(code);
}

}  // namespace

void add_chat(CLI::App& app) {
  CLI::App* command = app.add_subcommand("chat", "Talk with a chat model");
  const auto flags = std::make_shared<ChatFlags>();
  flags->question.add_to(*command, "question",
                         "Answer only this; without it, start a conversation");
  command->add_option("--system", flags->system, "The system prompt, for example who the model is")
      ->type_name("TEXT");
  command
      ->add_option("--chat-template", flags->chat_template,
                   fmt::format("The format of a conversation, if the model does not have one: {}, "
                               "or a file with a Jinja template",
                               builtin_chat_template_names()))
      ->check(not_empty("a name or a file"))
      ->type_name("NAME|FILE");
  add_template_variables_to(*command, flags->template_variables);
  command->add_flag("--verbose", flags->verbose, "Print the speed after each answer");
  flags->add_to(*command, std::to_string(kDefaultMaxTokens), kDefaultContextText);
  flags->add_grammar_to(*command);
  command->footer(
      "Examples: stagecraft chat --system \"You are a pirate.\"\n"
      "          stagecraft chat \"What do you like to eat?\" --seed 7\n"
      "          printf 'hi\\nbye\\n' | stagecraft chat");
  command->callback([flags] { run_chat(*flags); });
}

}  // namespace stagecraft
